// The connection to twscope. It comes back by itself; what was asked for is asked again.
import type { Message } from './protocol';
import { authorization, protocols } from './token';

export interface Wishes { watch?: number | 'all' | null; pace?: number; log?: string | null; bytes?: boolean; again?: boolean }

const AGAIN_MS = 300;
const REFUSED_AGAIN_MS = 3000; // who is not let in is no sooner by asking more
const CHECK_MS = 1000;
const SILENT_MS = 3000; // its state comes twice a second
const PATIENCE_MS = 1000;
const BELIEVED_AFTER = 3; // attempts: one may fall between an observer's end and the next one's start

/** Why twscope does not let this page in; nothing: it does not answer, or would let it in by now. */
async function refusal(attempts: number): Promise<string> {
    try {
        const answer = await fetch('/api/state', { cache: 'no-store', headers: authorization, signal: AbortSignal.timeout(PATIENCE_MS) });
        if (answer.ok) return attempts < BELIEVED_AFTER ? '' : 'too many viewers';
        return (await answer.text()).trim() || `status ${answer.status}`;
    } catch {
        return '';
    }
}

/** `refused`: what twscope said instead; nothing: it said nothing. */
export type OnChange = (open: boolean, refused: string) => void;

export class Live {
    private socket: WebSocket | null = null;
    private wishes: Wishes = {};
    private wasOpen = false;
    /** Since it was open. */
    private attempts = 0;
    /** performance.now() of the last message. */
    private heard = 0;

    constructor(private readonly onMessage: (message: Message) => void, private readonly onChange: OnChange) {
        this.open();
        setInterval(() => { if (this.isOpen && performance.now() - this.heard > SILENT_MS) this.lose(); }, CHECK_MS);
    }

    get isOpen(): boolean { return this.socket?.readyState === WebSocket.OPEN; }

    ask(wishes: Wishes): void {
        this.wishes = { ...this.wishes, ...wishes, again: false };
        if (this.isOpen) this.socket?.send(JSON.stringify(wishes));
    }

    private open(): void {
        const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`, protocols());
        this.socket = socket;
        this.wasOpen = false;
        socket.addEventListener('open', () => {
            this.wasOpen = true;
            this.attempts = 0;
            this.heard = performance.now();
            socket.send(JSON.stringify(this.wishes));
            this.onChange(true, '');
        });
        socket.addEventListener('message', (event) => {
            if (socket !== this.socket) return;
            this.heard = performance.now();
            this.onMessage(JSON.parse(event.data as string) as Message);
        });
        socket.addEventListener('close', () => { if (socket === this.socket) this.lose(); });
    }

    /** The end of a connection, or what has to be taken for one: a line that died says nothing of it. */
    private lose(): void {
        const { socket, wasOpen } = this;
        this.socket = null; // what still comes from it is not heard
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
