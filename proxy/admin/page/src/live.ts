// The connection to twscope. It comes back by itself; what was asked for is asked again.
import type { Message } from './protocol';
import { protocols } from './token';

export interface Wishes { watch?: number | 'all' | null; pace?: number; log?: string | null; bytes?: boolean; again?: boolean }

const AGAIN_MS = 300;

export class Live {
    private socket: WebSocket | null = null;
    private wishes: Wishes = {};
    /** performance.now() of the last message. */
    heard = 0;

    constructor(private readonly onMessage: (message: Message) => void, private readonly onChange: (open: boolean) => void) {
        this.open();
    }

    get isOpen(): boolean { return this.socket?.readyState === WebSocket.OPEN; }

    ask(wishes: Wishes): void {
        this.wishes = { ...this.wishes, ...wishes, again: false };
        if (this.isOpen) this.socket?.send(JSON.stringify(wishes));
    }

    private open(): void {
        const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`, protocols());
        this.socket = socket;
        socket.addEventListener('open', () => {
            this.heard = performance.now();
            socket.send(JSON.stringify(this.wishes));
            this.onChange(true);
        });
        socket.addEventListener('message', (event) => {
            this.heard = performance.now();
            this.onMessage(JSON.parse(event.data as string) as Message);
        });
        socket.addEventListener('close', () => {
            this.onChange(false);
            setTimeout(() => this.open(), AGAIN_MS);
        });
    }
}
