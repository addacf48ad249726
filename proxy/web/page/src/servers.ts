// The servers of one twscope, if there are several: the state of each, and the choice of a server.
import { withKey, updateChildren, makeLink, makeLinkButton, makeElement, numberCell, makeRow } from './dom';
import { formatTime, formatCount, formatSize } from './format';
import type { NamedServerState, State } from './protocol';
import { ratePerSecond } from './rates';

const COMMON_COLUMNS = ['server', 'state', 'players', 'sessions', 'findings'];
const FORWARDED_COLUMNS = [...COMMON_COLUMNS, 'to clients', 'to the server', 'clients at', 'address'];
const COLLECTED_COLUMNS = [...COMMON_COLUMNS, 'records/s', 'latest', 'its page'];

export class Servers {
    /** The server whose sessions are shown; null if the sessions of all servers are shown. */
    chosenServer: string | null = null;
    private readonly rows = makeElement('tbody');
    private readonly heads = makeElement('tr');
    readonly table = makeElement('div', 'scroll', makeElement('table', 'wide servers', makeElement('thead', '', this.heads), this.rows));

    constructor(private readonly onChosen: (name: string | null) => void) {
        this.table.hidden = true;
    }

    show(state: State, before: State | null, seconds: number): void {
        this.table.hidden = state.servers.length === 0;
        if (!state.servers.some(({ name }) => name === this.chosenServer)) this.chosenServer = null;
        updateChildren(this.heads, (state.stream ? COLLECTED_COLUMNS : FORWARDED_COLUMNS).map((title) => makeElement('th', '', title)));
        const then = new Map((before?.servers ?? []).map((server) => [server.name, server]));
        updateChildren(this.rows, state.servers.map((server) => this.makeServerRow(server, then.get(server.name), seconds)));
    }

    private makeServerRow(server: NamedServerState, old: NamedServerState | undefined, seconds: number): HTMLTableRowElement {
        const chosen = server.name === this.chosenServer;
        const name = makeLinkButton(server.name, chosen ? 'sessions of all servers' : 'show this server',
            () => { this.onChosen(this.chosenServer = this.chosenServer === server.name ? null : server.name); });
        name.setAttribute('aria-pressed', String(chosen));
        const { sessions } = server.relay;
        const made = makeRow(makeElement('td', '', name),
            makeElement('td', server.silent ? 'bad' : sessions ? 'good' : 'soft', server.silent ? 'does not answer' : sessions ? 'answers' : 'idle'),
            numberCell(formatCount(server.players)), numberCell(formatCount(sessions)), numberCell(formatCount(server.findings), server.findings ? 'warn' : 'soft'),
            ...(server.records === undefined ? this.forwardedCells(server, old, seconds) : this.collectedCells(server, old, seconds)));
        made.classList.toggle('chosen', chosen);
        return withKey(server.name, made);
    }

    private forwardedCells({ relay: { c2s, s2c }, listen, server }: NamedServerState, old: NamedServerState | undefined, seconds: number): (Node | string)[] {
        return [numberCell(`${formatSize(ratePerSecond(s2c.bytes, old?.relay.s2c.bytes, seconds))}/s`),
            numberCell(`${formatSize(ratePerSecond(c2s.bytes, old?.relay.c2s.bytes, seconds))}/s`), listen.join(', '), server];
    }

    private collectedCells({ records, last_ms: last, page }: NamedServerState, old: NamedServerState | undefined, seconds: number): (Node | string)[] {
        return [numberCell(formatCount(Math.round(ratePerSecond(records ?? 0, old?.records, seconds)))),
            makeElement('td', 'soft', last ? formatTime(last) : '–'), page ? makeElement('td', '', makeLink(page, 'see its game')) : '–'];
    }
}
