// The token comes behind the '#', which browsers send nowhere; it stays in this tab, and out of its address.

const KEPT = 'twscope-token';
const TOKEN = /(^#|&)token=([^&]*)/;

const brought = TOKEN.exec(location.hash)?.[2];
if (brought !== undefined) {
    sessionStorage.setItem(KEPT, brought);
    const rest = location.hash.replace(TOKEN, '').replace(/^#?&?/, '');
    history.replaceState(null, '', location.pathname + (rest && `#${rest}`));
}

// Whoever brings it to the open page begins anew with it.
addEventListener('hashchange', () => { if (TOKEN.test(location.hash)) location.reload(); });

export const token = sessionStorage.getItem(KEPT);
export const authorization: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};

/** WebSockets take no headers: the token goes as a subprotocol, in hex because of its letters. */
export function protocols(): string[] {
    const hex = [...new TextEncoder().encode(token ?? '')].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return hex ? ['twscope.live.1', `bearer.${hex}`] : ['twscope.live.1'];
}
