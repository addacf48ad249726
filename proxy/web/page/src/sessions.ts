// The players, and how well their connections work.
import { fetchJson } from './api';
import { withKey, updateChildren, elementById, makeButton, makeLinkButton, makeElement, numberCell, makeRow, visibleText } from './dom';
import { formatCount, formatPercent, formatRaceTime, formatSize } from './format';
import { addPanel } from './panels';
import type { SessionState, State } from './protocol';
import { GrowthTracker, meanSince, ratePerSecond } from './rates';
import { Servers } from './servers';
import { WORLD, type Store } from './store';

/** The data for the cells of a session's row. */
interface CellContext {
    session: SessionState;
    old: SessionState | undefined;
    seconds: number;
    name: Node | string;
    /** Whether the counter has grown recently. Older growth is not shown as an alarm. */
    hasGrown(counter: string, value: number): boolean;
}

interface Column {
    title: string;
    tip?: string;
    /** The least width of the panel that shows the column: 0 for any width, 3 for very wide (page.css). */
    minWidth: 0 | 1 | 2 | 3;
    /** Whether records of a stream contain the value while a session is open. */
    inStream?: true;
    cell(told: CellContext): HTMLTableCellElement | string;
}

const TICK_MS = 20;
/** What servers send as the score of a player who has not finished a race: DDNet to 0.6 clients, and all in milliseconds. */
const NO_SCORE = { points: -9999, ms: -1 };

const formatFrozenTime = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

function makeCountCell({ session, hasGrown: grew }: CellContext, counter: string, value: number, text: string): HTMLTableCellElement {
    const isNew = grew(counter, value);
    return numberCell(text, session.closed ? '' : value === 0 ? 'soft' : isNew ? 'warn' : '');
}

function makeVerifiedCell({ session: { snapshots, verified: good, closed }, hasGrown: grew }: CellContext): HTMLTableCellElement {
    const isNew = grew('unverified', snapshots - good);
    return numberCell(snapshots ? formatPercent(good / snapshots) : '–', closed || !snapshots ? '' : good === snapshots ? 'good' : isNew ? 'bad' : '');
}

/** Returns the ping since the previous state; without new values, the ping of the whole session. */
function pingText({ session: now, old }: CellContext): string {
    if (now.ack_lag_count === 0) return '–';
    const isNewer = old !== undefined && now.ack_lag_count > old.ack_lag_count;
    const ticks = isNewer ? meanSince(now.ack_lag_ticks, now.ack_lag_count, old.ack_lag_ticks, old.ack_lag_count) : now.ack_lag_ticks;
    return `${Math.round(ticks * TICK_MS)} ms`;
}

const COLUMNS: readonly Column[] = [
    { title: '#', minWidth: 0, inStream: true, cell: ({ session }) => `${session.number}` },
    { title: 'player', minWidth: 0, inStream: true, cell: ({ name }) => makeElement('td', '', name) },
    { title: 'score', minWidth: 0,
        cell: ({ session }) => numberCell(scoreText(session)) },
    { title: 'ping', tip: 'time from a snapshot until the client acknowledges it', minWidth: 0, cell: (told) => numberCell(told.session.closed ? 'left' : pingText(told)) },
    { title: 'verified', tip: 'share of the snapshots whose checksum was right', minWidth: 0, cell: makeVerifiedCell },
    { title: 'missed', tip: 'snapshots that were due and did not come', minWidth: 1,
        cell: (told) => makeCountCell(told, 'missed', told.session.missed, formatCount(told.session.missed)) },
    { title: 'frozen', tip: 'how long the player had nothing new to see', minWidth: 1,
        cell: (told) => makeCountCell(told, 'frozen', told.session.frozen_ms, told.session.frozen_ms ? formatFrozenTime(told.session.frozen_ms) : '–') },
    { title: 'findings', tip: 'warnings and errors', minWidth: 0, inStream: true,
        cell: (told) => makeCountCell(told, 'findings', told.session.findings, formatCount(told.session.findings)) },
    { title: 'where', minWidth: 2, cell: ({ session }) => (session.closed ? '–' : session.place || '–') },
    { title: 'resent', tip: 'messages sent again, by the client / by the server', minWidth: 2,
        cell: (told) => makeCountCell(told, 'resent', told.session.c2s.recovered + told.session.s2c.recovered,
            `${told.session.c2s.recovered} / ${told.session.s2c.recovered}`) },
    { title: 'to client', minWidth: 3, cell: ({ session, old, seconds }) => numberCell(`${formatSize(ratePerSecond(session.s2c.bytes, old?.s2c.bytes, seconds))}/s`) },
    { title: 'to server', minWidth: 3, cell: ({ session, old, seconds }) => numberCell(`${formatSize(ratePerSecond(session.c2s.bytes, old?.c2s.bytes, seconds))}/s`) },
    { title: 'client', minWidth: 3, inStream: true, cell: ({ session }) => session.client },
    { title: 'protocol', minWidth: 3, inStream: true, cell: ({ session }) => session.protocol || '–' },
    { title: 'map', minWidth: 3, inStream: true,
        cell: ({ session }) => `${session.server_name ? `${session.server_name}: ` : ''}${session.map || '–'}` },
];

function scoreText({ score, score_is_ms: isTime }: SessionState): string {
    if (typeof score !== 'number' || score === (isTime ? NO_SCORE.ms : NO_SCORE.points)) return '–';
    return isTime ? formatRaceTime(score) : formatCount(score);
}

const makeCard = (value: string, text: string, className = ''): HTMLElement =>
    makeElement('div', 'card', makeElement('b', className, value), makeElement('span', '', text));

export class Sessions {
    private readonly body = addPanel('sessions', 'sessions', 'S');
    private readonly cards = makeElement('div', 'cards');
    private readonly servers = new Servers((name) => this.showFirstSession(name));
    private readonly rows = makeElement('tbody');
    private readonly heads = makeElement('tr');
    private readonly source = elementById<HTMLSelectElement>('source');
    private readonly search = makeElement('input');
    private readonly growth = new GrowthTracker();

    constructor(private readonly store: Store, private readonly onSource: (source: number) => void) {
        const table = makeElement('table', 'wide players', makeElement('thead', '', this.heads), this.rows);
        const all = makeButton('all columns', 'show every column', () => {
            all.setAttribute('aria-pressed', String(table.classList.toggle('all')));
        });
        all.setAttribute('aria-pressed', 'false');
        this.search.type = 'search';
        this.search.placeholder = 'find a player, client or map';
        this.search.setAttribute('aria-label', this.search.placeholder);
        this.search.addEventListener('input', () => this.show());
        this.body.append(this.cards, this.servers.table, makeElement('div', 'find', this.search, all), makeElement('div', 'scroll', table));
        this.source.addEventListener('change', () => onSource(Number(this.source.value)));
        store.on('state', () => this.show());
    }

    private show(): void {
        const { state, previousState: before } = this.store;
        if (!state) return;
        const seconds = before ? (state.now_ms - before.now_ms) / 1000 : 0;
        this.showCards(state, before, seconds);
        this.servers.show(state, before, seconds);
        if (!state.stream) this.showSources(state);
        updateChildren(this.heads, this.columns().map(({ title, tip, minWidth: room }) => {
            const head = makeElement('th', `room-${room}`, title);
            head.title = tip ?? '';
            return head;
        }));
        const then = new Map((before?.sessions ?? []).map((session) => [session.number, session]));
        const of = this.sessionsToShow(state);
        const shown = of.sessions.filter((session) => this.isOfChosenServer(session) && this.matchesSearch(session));
        const inOrder = [...shown.filter(({ closed }) => !closed), ...shown.filter(({ closed }) => closed)];
        const rows = inOrder.map((session) => this.makeSessionRow(session, then.get(session.number), seconds));
        const hidden = of.seen - of.sessions.length;
        if (rows.length === 0) rows.push(this.makeWholeRow(makeElement('span', 'soft', this.search.value ? 'no such session' : 'no sessions')));
        else if (state.inspecting && !state.stream) rows.unshift(this.makeWorldRow());
        if (hidden > 0) rows.push(this.makeWholeRow(makeElement('span', 'soft', `and ${hidden} more`)));
        updateChildren(this.rows, rows);
    }

    private fetchedSessions: { of: string; sessions: SessionState[]; seen: number } | null = null;

    /** Returns the sessions to show. A stream's state has no room for all sessions, so those of the chosen server are
     *  requested. */
    private sessionsToShow(state: State): { sessions: SessionState[]; seen: number } {
        const server = this.servers.chosenServer;
        if (state.stream && server !== null) {
            void fetchJson<{ sessions: SessionState[]; seen_by_inspection: number }>(`/api/sessions?server=${encodeURIComponent(server)}`).then((got) => {
                const { sessions, seen_by_inspection: seen } = got;
                this.fetchedSessions = { of: server, sessions, seen };
            }).catch(() => { this.fetchedSessions = null; });
            if (this.fetchedSessions?.of === server) return this.fetchedSessions;
        }
        return { sessions: state.sessions, seen: state.sessions_seen_by_inspection };
    }

    private isOfChosenServer(session: SessionState): boolean {
        return this.servers.chosenServer === null || session.server_name === this.servers.chosenServer;
    }

    private matchesSearch(session: SessionState): boolean {
        const wanted = this.search.value.trim().toLowerCase();
        return [`${session.number}`, session.name, session.client, session.map, session.server_name ?? ''].some((text) => text.toLowerCase().includes(wanted));
    }

    /** Shows the first session of the server. */
    private showFirstSession(server: string | null): void {
        this.show();
        if (this.store.state?.stream) return; // a stream of records shows no game
        const first = server === null ? undefined : this.store.state?.sessions.find((session) => this.isOfChosenServer(session) && !session.closed);
        if (first) this.onSource(first.number);
    }

    private showCards(state: State, before: State | null, seconds: number): void {
        const perSecond = (pick: (from: State) => number): number => ratePerSecond(pick(state), before ? pick(before) : undefined, seconds);
        const total = state.snapshots['total'] ?? 0;
        const verified = state.snapshots['verified'] ?? 0;
        const serious = state.findings.filter(({ severity }) => severity !== 'info').reduce((sum, { count: n }) => sum + n, 0);
        const { c2s, s2c } = state.relay;
        const dropped = c2s.dropped + s2c.dropped + c2s.refused + s2c.refused;
        const lost = c2s.copies_lost + s2c.copies_lost;
        const now = state.now_ms;
        const isNew = (name: string, value: number): boolean => this.growth.hasGrown(name, value, now);
        const cards = [
            makeCard(formatCount(state.relay.sessions), state.relay.sessions === 1 ? 'session' : 'sessions'),
            makeCard(`${formatSize(perSecond((from) => from.relay.s2c.bytes))}/s`, 'to clients'),
            makeCard(`${formatSize(perSecond((from) => from.relay.c2s.bytes))}/s`, 'to the server'),
        ];
        if (state.inspecting) {
            cards.push(makeCard(formatCount(Math.round(perSecond((from) => from.snapshots['total'] ?? 0))), 'snapshots/s'),
                makeCard(total ? formatPercent(verified / total) : '–', `verified, of ${formatCount(total)}`,
                    total === 0 ? '' : verified === total ? 'good' : isNew('unverified', total - verified) ? 'bad' : ''),
                makeCard(formatCount(serious), 'warnings, errors', isNew('serious', serious) ? 'warn' : ''));
        }
        if (dropped) cards.push(makeCard(formatCount(dropped), 'datagrams not forwarded', isNew('dropped', dropped) ? 'bad' : ''));
        if (lost) cards.push(makeCard(formatCount(lost), 'forwarded, not inspected', isNew('lost', lost) ? 'warn' : ''));
        updateChildren(this.cards, state.stream ? this.streamCards(state, perSecond((from) => from.stream?.records ?? 0), serious) : cards);
    }

    private streamCards({ servers, sessions_seen_by_inspection: sessions, stream }: State, records: number, serious: number): HTMLElement[] {
        const players = servers.reduce((sum, server) => sum + server.players, 0);
        const cards = [makeCard(formatCount(servers.length), servers.length === 1 ? 'server' : 'servers'), makeCard(formatCount(players), 'players'),
            makeCard(formatCount(sessions), 'sessions'), makeCard(formatCount(Math.round(records)), 'records/s'),
            makeCard(formatCount(serious), 'warnings, errors', serious ? 'warn' : '')];
        if (stream?.left_out) cards.push(makeCard(formatCount(stream.left_out), 'records of servers beyond those shown', 'warn'));
        return cards;
    }

    private makeSessionRow(session: SessionState, old: SessionState | undefined, seconds: number): HTMLTableRowElement {
        const { state, source } = this.store;
        const key = state?.stream ? `${session.server_name ?? ''} ${session.number}` : `${session.number}`;
        const name = session.name || session.client;
        const told: CellContext = { session, old, seconds, name: state?.stream ? `${name}${session.closed ? ' (left)' : ''}` : this.makeViewButton(name, 'view this session', session.number),
            hasGrown: (counter, value) => this.growth.hasGrown(`${key} ${counter}`, value, state?.now_ms ?? 0) };
        const made = makeElement('tr');
        for (const { minWidth: room, cell } of this.columns()) {
            const content = cell(told);
            const td = typeof content === 'string' ? makeElement('td', '', content) : content;
            td.classList.add(`room-${room}`);
            made.append(td);
        }
        made.classList.toggle('chosen', session.number === source);
        made.classList.toggle('left', session.closed);
        return withKey(key, made);
    }

    private columns(): readonly Column[] {
        return this.store.state?.stream ? COLUMNS.filter(({ inStream }) => inStream) : COLUMNS;
    }

    private makeWholeRow(content: Node): HTMLTableRowElement {
        const cell = makeElement('td', '', content);
        cell.colSpan = COLUMNS.length;
        return makeRow(cell);
    }

    private makeWorldRow(): HTMLTableRowElement {
        // Below the name, because beside it the text would be cut off at the edge of the panel.
        const name = makeElement('td', '', this.makeViewButton('all players', 'view all players (W)', WORLD),
            makeElement('p', 'soft', `all sessions${this.worldServerText(' of ')} as one game`));
        name.colSpan = COLUMNS.length - 1;
        const made = makeRow('∗', name);
        made.classList.toggle('chosen', this.store.source === WORLD);
        return withKey(WORLD, made);
    }

    /** Returns the server of the world shown, if there are several servers. */
    private worldServerText(before: string): string {
        const { worldServer } = this.store;
        return worldServer === null ? '' : visibleText(before + worldServer);
    }

    private makeViewButton(text: string, title: string, source: number): HTMLButtonElement {
        return makeLinkButton(text, title, () => this.onSource(source));
    }

    /** Fills the list of sources. The current source stays in the list after it has ended, because the page still has its
     *  history. */
    private showSources(state: State): void {
        const { source } = this.store;
        const wanted = state.sessions.filter((session) => !session.closed)
            .map((session) => ({ value: session.number, text: `${session.number} ${session.name || session.client}` }));
        const first = wanted[0]?.value;
        if (first !== undefined || source === WORLD) wanted.unshift({ value: WORLD, text: `all players${this.worldServerText(': ')}` });
        if (!wanted.some(({ value }) => value === source)) {
            if (first !== undefined && this.hasShownNothing()) return this.onSource(first);
            if (source > 0) wanted.push({ value: source, text: `${source} ${this.playerNameOf(state, source)} (left)` });
        }
        updateChildren(this.source, wanted.map(({ value, text }) => withKey(value, new Option(visibleText(text), `${value}`))));
        if (this.source.value !== `${source}`) this.source.value = `${source}`;
    }

    private hasShownNothing(): boolean {
        const { source, isLive, history } = this.store;
        return source < 0 || (isLive && history.length === 0);
    }

    private lastNamedSession = { number: 0, name: '' };

    /** Returns a session's player name. It is remembered, because twscope forgets sessions that have ended. */
    playerNameOf(state: State, number: number): string {
        const name = state.sessions.find((session) => session.number === number)?.name;
        if (name) this.lastNamedSession = { number, name };
        return this.lastNamedSession.number === number ? this.lastNamedSession.name : '';
    }
}
