// The access token, and the requests that send it. The token comes from the part of the address after '#', which browsers do not
// send. It is kept for this tab, and removed from the address.

const TOKEN_STORAGE_KEY = 'twscope-token';
const TOKEN_PART = /(^#|&)token=([^&]*)/;

const tokenInAddress = TOKEN_PART.exec(location.hash)?.[2];
if (tokenInAddress !== undefined) {
    sessionStorage.setItem(TOKEN_STORAGE_KEY, tokenInAddress);
    const rest = location.hash.replace(TOKEN_PART, '').replace(/^#?&?/, '');
    history.replaceState(null, '', location.pathname + (rest && `#${rest}`));
}

// Reloads an open page when a token is entered into its address.
addEventListener('hashchange', () => { if (TOKEN_PART.test(location.hash)) location.reload(); });

export const token = sessionStorage.getItem(TOKEN_STORAGE_KEY);
export const authorization: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};

/** Returns the token as a subprotocol, because a WebSocket request has no headers for it. It is in hex, because not all
 *  characters are permitted. */
export function webSocketProtocols(): string[] {
    const hex = [...new TextEncoder().encode(token ?? '')].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex ? ['twscope.live.1', `bearer.${hex}`] : ['twscope.live.1'];
}

const API_TIMEOUT_MS = 8000;

export async function fetchOk(path: string, options: RequestInit = {}): Promise<Response> {
    const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(API_TIMEOUT_MS), ...options,
        headers: { ...authorization, ...options.headers } });
    if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status}`);
    return answer;
}

export const fetchText = async (path: string): Promise<string> => (await fetchOk(path)).text();
export const fetchJson = async <T>(path: string): Promise<T> => (await fetchOk(path)).json() as Promise<T>;

export function decodeBase64(base64: string): Uint8Array {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
}
