// The servers of one twscope, if there are several: the state of each, and the choice of a server.
import { keyed, updateChildren } from './children';
import { link, linkButton, make, number, row } from './dom';
import { clock, count, size } from './format';
import type { NamedServerState, State } from './protocol';
import { rate } from './rates';

const COMMON = ['server', 'state', 'players', 'sessions', 'findings'];
const FORWARDED = [...COMMON, 'to clients', 'to the server', 'clients at', 'address'];
const COLLECTED = [...COMMON, 'records/s', 'latest', 'its page'];

export class Servers {
    /** The server whose sessions are shown; null if the sessions of all servers are shown. */
    chosen: string | null = null;
    private readonly rows = make('tbody');
    private readonly heads = make('tr');
    readonly table = make('div', 'scroll', make('table', 'wide servers', make('thead', '', this.heads), this.rows));

    constructor(private readonly onChosen: (name: string | null) => void) {
        this.table.hidden = true;
    }

    show(state: State, before: State | null, seconds: number): void {
        this.table.hidden = state.servers.length === 0;
        if (!state.servers.some(({ name }) => name === this.chosen)) this.chosen = null;
        updateChildren(this.heads, (state.stream ? COLLECTED : FORWARDED).map((title) => make('th', '', title)));
        const then = new Map((before?.servers ?? []).map((server) => [server.name, server]));
        updateChildren(this.rows, state.servers.map((server) => this.row(server, then.get(server.name), seconds)));
    }

    private row(server: NamedServerState, old: NamedServerState | undefined, seconds: number): HTMLTableRowElement {
        const chosen = server.name === this.chosen;
        const name = linkButton(server.name, chosen ? 'sessions of all servers' : 'show this server',
            () => { this.onChosen(this.chosen = this.chosen === server.name ? null : server.name); });
        name.setAttribute('aria-pressed', String(chosen));
        const { sessions } = server.relay;
        const made = row(make('td', '', name),
            make('td', server.silent ? 'bad' : sessions ? 'good' : 'soft', server.silent ? 'does not answer' : sessions ? 'answers' : 'idle'),
            number(count(server.players)), number(count(sessions)), number(count(server.findings), server.findings ? 'warn' : 'soft'),
            ...(server.records === undefined ? this.forwarded(server, old, seconds) : this.collected(server, old, seconds)));
        made.classList.toggle('chosen', chosen);
        return keyed(server.name, made);
    }

    private forwarded({ relay: { c2s, s2c }, listen, server }: NamedServerState, old: NamedServerState | undefined, seconds: number): (Node | string)[] {
        return [number(`${size(rate(s2c.bytes, old?.relay.s2c.bytes, seconds))}/s`),
            number(`${size(rate(c2s.bytes, old?.relay.c2s.bytes, seconds))}/s`), listen.join(', '), server];
    }

    private collected({ records, last_ms: last, page }: NamedServerState, old: NamedServerState | undefined, seconds: number): (Node | string)[] {
        return [number(count(Math.round(rate(records ?? 0, old?.records, seconds)))),
            make('td', 'soft', last ? clock(last) : '–'), page ? make('td', '', link(page, 'see its game')) : '–'];
    }
}
