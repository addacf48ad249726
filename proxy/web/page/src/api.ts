import { authorization } from './token';

const PATIENCE_MS = 8000;

export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
    const answer = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS), ...options,
        headers: { ...authorization, ...options.headers } });
    if (!answer.ok) throw new Error((await answer.text()).trim() || `${answer.status}`);
    return answer;
}

export const askText = async (path: string): Promise<string> => (await ask(path)).text();
export const askJson = async <T>(path: string): Promise<T> => (await ask(path)).json() as Promise<T>;

export function bytesOf(base64: string): Uint8Array {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
}
