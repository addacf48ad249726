// The connection to twscope. It reconnects by itself and repeats the page's requests.
import type { Message } from './protocol';
import { authorization, protocols } from './token';

export interface ViewerRequests { watch?: number | 'all' | null; pace?: number; log?: string | null; bytes?: boolean; again?: boolean }

const AGAIN_MS = 300;
const REFUSED_AGAIN_MS = 3000; // a page that is refused has no advantage from asking more often
const CHECK_MS = 1000;
const SILENT_MS = 3000; // the state comes twice a second, so a longer silence means a broken connection
const PATIENCE_MS = 1000;
const BELIEVED_AFTER = 3; // number of failed attempts before a refusal is shown; one may fail while the observer restarts

/** Returns why twscope refuses this page; empty if it does not answer or no longer refuses. */
async function refusal(attempts: number): Promise<string> {
    try {
        const answer = await fetch('/api/state', { cache: 'no-store', headers: authorization, signal: AbortSignal.timeout(PATIENCE_MS) });
        if (answer.ok) return attempts < BELIEVED_AFTER ? '' : 'too many viewers';
        return (await answer.text()).trim() || `status ${answer.status}`;
    } catch {
        return '';
    }
}

/** `refused`: the reason that twscope gave for refusing the connection; empty if it gave none. */
export type OnChange = (open: boolean, refused: string) => void;

export class Connection {
    private socket: WebSocket | null = null;
    private requests: ViewerRequests = {};
    private wasOpen = false;
    /** Number of attempts since the connection was last open. */
    private attempts = 0;
    /** performance.now() of the last message. */
    private heard = 0;

    constructor(private readonly onMessage: (message: Message) => void, private readonly onChange: OnChange) {
        this.open();
        setInterval(() => { if (this.isOpen && performance.now() - this.heard > SILENT_MS) this.onEnd(); }, CHECK_MS);
    }

    get isOpen(): boolean { return this.socket?.readyState === WebSocket.OPEN; }

    request(requests: ViewerRequests): void {
        this.requests = { ...this.requests, ...requests, again: false };
        if (this.isOpen) this.socket?.send(JSON.stringify(requests));
    }

    private open(): void {
        const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`, protocols());
        this.socket = socket;
        this.wasOpen = false;
        socket.addEventListener('open', () => {
            this.wasOpen = true;
            this.attempts = 0;
            this.heard = performance.now();
            socket.send(JSON.stringify(this.requests));
            this.onChange(true, '');
        });
        socket.addEventListener('message', (event) => {
            if (socket !== this.socket) return;
            this.heard = performance.now();
            this.onMessage(JSON.parse(event.data as string) as Message);
        });
        socket.addEventListener('close', () => { if (socket === this.socket) this.onEnd(); });
    }

    /** Handles the end of a connection. A connection without messages counts as ended, because a broken one may not close. */
    private onEnd(): void {
        const { socket, wasOpen } = this;
        this.socket = null; // so that late messages of this socket are ignored
        socket?.close();
        if (wasOpen) {
            this.onChange(false, '');
            setTimeout(() => this.open(), AGAIN_MS);
            return;
        }
        void refusal(this.attempts += 1).then((text) => {
            this.onChange(false, text);
            setTimeout(() => this.open(), text ? REFUSED_AGAIN_MS : AGAIN_MS);
        });
    }
}
