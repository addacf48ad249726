// The connection to twscope. It reconnects by itself and repeats the page's requests.
import type { Message } from './protocol';
import { authorization, webSocketProtocols } from './api';

export interface ViewerRequests { watch?: number | 'all' | null; pace?: number; log?: string | null; bytes?: boolean; again?: boolean }

const RETRY_MS = 300;
const REFUSED_RETRY_MS = 3000; // a refused page would gain nothing from more frequent attempts
const SILENCE_CHECK_MS = 1000;
const MAX_SILENCE_MS = 3000; // the state comes twice a second, so a longer silence means a broken connection
const REQUEST_TIMEOUT_MS = 1000;
const ATTEMPTS_BEFORE_REFUSAL = 3; // number of failed attempts before a refusal is shown; one may fail while the observer restarts

/** Returns why twscope refuses this page; empty if it does not answer or no longer refuses. */
async function fetchRefusal(attempts: number): Promise<string> {
    try {
        const answer = await fetch('/api/state', { cache: 'no-store', headers: authorization, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
        if (answer.ok) return attempts < ATTEMPTS_BEFORE_REFUSAL ? '' : 'too many viewers';
        return (await answer.text()).trim() || `status ${answer.status}`;
    } catch {
        return '';
    }
}

/** `refused`: the reason that twscope gave for refusing the connection; empty if it gave none. */
export type ConnectionListener = (open: boolean, refused: string) => void;

export class Connection {
    private socket: WebSocket | null = null;
    private requests: ViewerRequests = {};
    private wasOpen = false;
    /** Number of attempts since the connection was last open. */
    private attempts = 0;
    /** Value of performance.now() when the last message arrived. */
    private lastMessageAt = 0;

    constructor(private readonly onMessage: (message: Message) => void, private readonly onChange: ConnectionListener) {
        this.open();
        setInterval(() => { if (this.isOpen && performance.now() - this.lastMessageAt > MAX_SILENCE_MS) this.handleEnd(); }, SILENCE_CHECK_MS);
    }

    get isOpen(): boolean { return this.socket?.readyState === WebSocket.OPEN; }

    request(requests: ViewerRequests): void {
        this.requests = { ...this.requests, ...requests, again: false };
        if (this.isOpen) this.socket?.send(JSON.stringify(requests));
    }

    private open(): void {
        const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`, webSocketProtocols());
        this.socket = socket;
        this.wasOpen = false;
        socket.addEventListener('open', () => {
            this.wasOpen = true;
            this.attempts = 0;
            this.lastMessageAt = performance.now();
            socket.send(JSON.stringify(this.requests));
            this.onChange(true, '');
        });
        socket.addEventListener('message', (event) => {
            if (socket !== this.socket) return;
            this.lastMessageAt = performance.now();
            this.onMessage(JSON.parse(event.data as string) as Message);
        });
        socket.addEventListener('close', () => { if (socket === this.socket) this.handleEnd(); });
    }

    /** Handles the end of a connection. A connection without messages counts as ended, because a broken one may not close. */
    private handleEnd(): void {
        const { socket, wasOpen } = this;
        this.socket = null; // late messages of this socket are then ignored
        socket?.close();
        if (wasOpen) {
            this.onChange(false, '');
            setTimeout(() => this.open(), RETRY_MS);
            return;
        }
        void fetchRefusal(this.attempts += 1).then((text) => {
            this.onChange(false, text);
            setTimeout(() => this.open(), text ? REFUSED_RETRY_MS : RETRY_MS);
        });
    }
}
