// What somebody has to know at once.
import { at, make } from './dom';
import { clock, count } from './format';
import type { State } from './protocol';

const UNANSWERED_MS = 1200;
const UNANSWERED = 3;
const RESTART_SHOWN_MS = 20_000;

export class Alarms {
    private open = false;
    private state: State | null = null;
    private answered = { s2c: -1, c2s: 0, ms: 0 };
    private restarted = 0;
    private readonly box = at('alarm');

    connection(open: boolean): void {
        this.open = open;
        this.show();
    }

    hear(state: State): void {
        if (this.state && state.observer !== this.state.observer) this.restarted = performance.now();
        if (this.state && state.started_ms !== this.state.started_ms) this.restarted ||= performance.now();
        this.state = state;
        const { c2s, s2c } = state.relay;
        // Before twscope calls the server silent: nothing has come from it for a while, and something was sent to it.
        if (s2c.datagrams !== this.answered.s2c) this.answered = { s2c: s2c.datagrams, c2s: c2s.datagrams, ms: state.now_ms };
        this.show();
    }

    private texts(): string[] {
        const { state } = this;
        if (!this.open) return ['No connection to twscope: it has ended, or its observer is being started again. Trying again; the game may well go on.'];
        if (!state) return [];
        const texts: string[] = [];
        const waiting = state.now_ms - this.answered.ms;
        if (state.server_silent) {
            texts.push(`The server ${state.server} has not answered since ${clock(state.server_silent_since_ms ?? state.now_ms)}: ` +
                `${count(state.server_unanswered ?? 0)} datagrams${state.server_refused ? `, ${count(state.server_refused)} refused` : ''}.`);
        } else if (waiting > UNANSWERED_MS && state.relay.c2s.datagrams - this.answered.c2s >= UNANSWERED) {
            texts.push(`The server ${state.server} does not answer: nothing for ${(waiting / 1000).toFixed(1)} s.`);
        }
        if (state.recording.failed) {
            texts.push(`Recording stopped: ${count(state.recording.lost)} records could not be written. The game goes on.`);
        }
        if (state.recording.page?.stopped) {
            texts.push(`Recording from the page stopped: ${state.recording.page.stopped}. The game goes on.`);
        }
        if (this.restarted && performance.now() - this.restarted < RESTART_SHOWN_MS) {
            texts.push(`The observer was started again (number ${state.observer}): what passed meanwhile was forwarded, not looked at.`);
        }
        return texts;
    }

    show(): void {
        const texts = this.texts();
        this.box.hidden = texts.length === 0;
        if (this.box.textContent !== texts.join('')) this.box.replaceChildren(...texts.map((text) => make('p', '', text)));
        document.body.classList.toggle('alarmed', texts.length > 0);
    }
}
