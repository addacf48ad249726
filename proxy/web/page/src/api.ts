import { authorization } from './token';

const PATIENCE_MS = 8000;

export async function fetchOk(path: string, options: RequestInit = {}): Promise<Response> {
    const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS), ...options,
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
