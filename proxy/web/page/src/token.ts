// Takes the token from the part of the address after '#', which browsers do not send, keeps it for this tab, and removes it from the address.

const KEPT = 'twscope-token';
const TOKEN = /(^#|&)token=([^&]*)/;

const brought = TOKEN.exec(location.hash)?.[2];
if (brought !== undefined) {
    sessionStorage.setItem(KEPT, brought);
    const rest = location.hash.replace(TOKEN, '').replace(/^#?&?/, '');
    history.replaceState(null, '', location.pathname + (rest && `#${rest}`));
}

// Reloads an open page when a token is entered into its address.
addEventListener('hashchange', () => { if (TOKEN.test(location.hash)) location.reload(); });

export const token = sessionStorage.getItem(KEPT);
export const authorization: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};

/** Returns the token as a subprotocol, because a WebSocket request has no headers for it. It is in hex, because not all
 *  characters are permitted. */
export function protocols(): string[] {
    const hex = [...new TextEncoder().encode(token ?? '')].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex ? ['twscope.live.1', `bearer.${hex}`] : ['twscope.live.1'];
}
