// The players, and how well their connections work.
import { fetchJson } from './api';
import { keyed, updateChildren } from './children';
import { at, button, linkButton, make, number, row, shown } from './dom';
import { count, percent, raceTime, size } from './format';
import { panel } from './panels';
import type { SessionState, State } from './protocol';
import { Growth, meanSince, rate } from './rates';
import { Servers } from './servers';
import { WORLD, type Store } from './store';

/** The data for the cells of a session's row. */
interface CellContext {
    session: SessionState;
    old: SessionState | undefined;
    seconds: number;
    name: Node | string;
    /** Whether the counter has grown recently. Older growth is not shown as an alarm. */
    grew(counter: string, value: number): boolean;
}

interface Column {
    title: string;
    tip?: string;
    /** The least width of the panel that shows the column: 0 for any width, 3 for very wide (page.css). */
    room: 0 | 1 | 2 | 3;
    /** Whether records of a stream contain the value while a session is open. */
    inStream?: true;
    cell(told: CellContext): HTMLTableCellElement | string;
}

const TICK_MS = 20;
/** What servers send as the score of a player who has not finished a race: DDNet to 0.6 clients, and all in milliseconds. */
const NO_SCORE = { points: -9999, ms: -1 };

const duration = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

function counted({ session, grew }: CellContext, counter: string, value: number, text: string): HTMLTableCellElement {
    const isNew = grew(counter, value);
    return number(text, session.closed ? '' : value === 0 ? 'soft' : isNew ? 'warn' : '');
}

function verified({ session: { snapshots, verified: good, closed }, grew }: CellContext): HTMLTableCellElement {
    const isNew = grew('unverified', snapshots - good);
    return number(snapshots ? percent(good / snapshots) : '–', closed || !snapshots ? '' : good === snapshots ? 'good' : isNew ? 'bad' : '');
}

/** Returns the ping since the previous state; without new values, the ping of the whole session. */
function ping({ session: now, old }: CellContext): string {
    if (now.ack_lag_count === 0) return '–';
    const isNewer = old !== undefined && now.ack_lag_count > old.ack_lag_count;
    const ticks = isNewer ? meanSince(now.ack_lag_ticks, now.ack_lag_count, old.ack_lag_ticks, old.ack_lag_count) : now.ack_lag_ticks;
    return `${Math.round(ticks * TICK_MS)} ms`;
}

const COLUMNS: readonly Column[] = [
    { title: '#', room: 0, inStream: true, cell: ({ session }) => `${session.number}` },
    { title: 'player', room: 0, inStream: true, cell: ({ name }) => make('td', '', name) },
    { title: 'score', room: 0,
        cell: ({ session }) => number(scoreText(session)) },
    { title: 'ping', tip: 'time from a snapshot until the client acknowledges it', room: 0, cell: (told) => number(told.session.closed ? 'left' : ping(told)) },
    { title: 'verified', tip: 'share of the snapshots whose checksum was right', room: 0, cell: verified },
    { title: 'missed', tip: 'snapshots that were due and did not come', room: 1,
        cell: (told) => counted(told, 'missed', told.session.missed, count(told.session.missed)) },
    { title: 'frozen', tip: 'how long the player had nothing new to see', room: 1,
        cell: (told) => counted(told, 'frozen', told.session.frozen_ms, told.session.frozen_ms ? duration(told.session.frozen_ms) : '–') },
    { title: 'findings', tip: 'warnings and errors', room: 0, inStream: true,
        cell: (told) => counted(told, 'findings', told.session.findings, count(told.session.findings)) },
    { title: 'where', room: 2, cell: ({ session }) => (session.closed ? '–' : session.place || '–') },
    { title: 'resent', tip: 'messages sent again, by the client / by the server', room: 2,
        cell: (told) => counted(told, 'resent', told.session.c2s.recovered + told.session.s2c.recovered,
            `${told.session.c2s.recovered} / ${told.session.s2c.recovered}`) },
    { title: 'to client', room: 3, cell: ({ session, old, seconds }) => number(`${size(rate(session.s2c.bytes, old?.s2c.bytes, seconds))}/s`) },
    { title: 'to server', room: 3, cell: ({ session, old, seconds }) => number(`${size(rate(session.c2s.bytes, old?.c2s.bytes, seconds))}/s`) },
    { title: 'client', room: 3, inStream: true, cell: ({ session }) => session.client },
    { title: 'protocol', room: 3, inStream: true, cell: ({ session }) => session.protocol || '–' },
    { title: 'map', room: 3, inStream: true,
        cell: ({ session }) => `${session.server_name ? `${session.server_name}: ` : ''}${session.map || '–'}` },
];

function scoreText({ score, score_is_ms: isTime }: SessionState): string {
    if (typeof score !== 'number' || score === (isTime ? NO_SCORE.ms : NO_SCORE.points)) return '–';
    return isTime ? raceTime(score) : count(score);
}

const card = (value: string, text: string, className = ''): HTMLElement =>
    make('div', 'card', make('b', className, value), make('span', '', text));

export class Sessions {
    private readonly body = panel('sessions', 'sessions', 'S');
    private readonly cards = make('div', 'cards');
    private readonly servers = new Servers((name) => this.showFirstSession(name));
    private readonly rows = make('tbody');
    private readonly heads = make('tr');
    private readonly source = at<HTMLSelectElement>('source');
    private readonly search = make('input');
    private readonly growth = new Growth();

    constructor(private readonly store: Store, private readonly onSource: (source: number) => void) {
        const table = make('table', 'wide players', make('thead', '', this.heads), this.rows);
        const all = button('all columns', 'show every column', () => {
            all.setAttribute('aria-pressed', String(table.classList.toggle('all')));
        });
        all.setAttribute('aria-pressed', 'false');
        this.search.type = 'search';
        this.search.placeholder = 'find a player, client or map';
        this.search.setAttribute('aria-label', this.search.placeholder);
        this.search.addEventListener('input', () => this.show());
        this.body.append(this.cards, this.servers.table, make('div', 'find', this.search, all), make('div', 'scroll', table));
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
        updateChildren(this.heads, this.columns().map(({ title, tip, room }) => {
            const head = make('th', `room-${room}`, title);
            head.title = tip ?? '';
            return head;
        }));
        const then = new Map((before?.sessions ?? []).map((session) => [session.number, session]));
        const of = this.ofChosen(state);
        const shown = of.sessions.filter((session) => this.isShown(session) && this.isFound(session));
        const inOrder = [...shown.filter(({ closed }) => !closed), ...shown.filter(({ closed }) => closed)];
        const rows = inOrder.map((session) => this.row(session, then.get(session.number), seconds));
        const hidden = of.seen - of.sessions.length;
        if (rows.length === 0) rows.push(this.wholeRow(make('span', 'soft', this.search.value ? 'no such session' : 'no sessions')));
        else if (state.inspecting && !state.stream) rows.unshift(this.worldRow());
        if (hidden > 0) rows.push(this.wholeRow(make('span', 'soft', `and ${hidden} more`)));
        updateChildren(this.rows, rows);
    }

    private chosen: { of: string; sessions: SessionState[]; seen: number } | null = null;

    /** Returns the sessions to show. A stream's state has no room for all sessions, so those of the chosen server are
     *  requested. */
    private ofChosen(state: State): { sessions: SessionState[]; seen: number } {
        const server = this.servers.chosen;
        if (state.stream && server !== null) {
            void fetchJson<{ sessions: SessionState[]; seen_by_inspection: number }>(`/api/sessions?server=${encodeURIComponent(server)}`).then((got) => {
                const { sessions, seen_by_inspection: seen } = got;
                this.chosen = { of: server, sessions, seen };
            }).catch(() => { this.chosen = null; });
            if (this.chosen?.of === server) return this.chosen;
        }
        return { sessions: state.sessions, seen: state.sessions_seen_by_inspection };
    }

    private isShown(session: SessionState): boolean {
        return this.servers.chosen === null || session.server_name === this.servers.chosen;
    }

    private isFound(session: SessionState): boolean {
        const wanted = this.search.value.trim().toLowerCase();
        return [`${session.number}`, session.name, session.client, session.map, session.server_name ?? ''].some((text) => text.toLowerCase().includes(wanted));
    }

    /** Shows the first session of the server. */
    private showFirstSession(server: string | null): void {
        this.show();
        if (this.store.state?.stream) return; // a stream of records shows no game
        const first = server === null ? undefined : this.store.state?.sessions.find((session) => this.isShown(session) && !session.closed);
        if (first) this.onSource(first.number);
    }

    private showCards(state: State, before: State | null, seconds: number): void {
        const perSecond = (pick: (from: State) => number): number => rate(pick(state), before ? pick(before) : undefined, seconds);
        const total = state.snapshots['total'] ?? 0;
        const verified = state.snapshots['verified'] ?? 0;
        const serious = state.findings.filter(({ severity }) => severity !== 'info').reduce((sum, { count: n }) => sum + n, 0);
        const { c2s, s2c } = state.relay;
        const dropped = c2s.dropped + s2c.dropped + c2s.refused + s2c.refused;
        const lost = c2s.copies_lost + s2c.copies_lost;
        const now = state.now_ms;
        const isNew = (name: string, value: number): boolean => this.growth.hasGrown(name, value, now);
        const cards = [
            card(count(state.relay.sessions), state.relay.sessions === 1 ? 'session' : 'sessions'),
            card(`${size(perSecond((from) => from.relay.s2c.bytes))}/s`, 'to clients'),
            card(`${size(perSecond((from) => from.relay.c2s.bytes))}/s`, 'to the server'),
        ];
        if (state.inspecting) {
            cards.push(card(count(Math.round(perSecond((from) => from.snapshots['total'] ?? 0))), 'snapshots/s'),
                card(total ? percent(verified / total) : '–', `verified, of ${count(total)}`,
                    total === 0 ? '' : verified === total ? 'good' : isNew('unverified', total - verified) ? 'bad' : ''),
                card(count(serious), 'warnings, errors', isNew('serious', serious) ? 'warn' : ''));
        }
        if (dropped) cards.push(card(count(dropped), 'datagrams not forwarded', isNew('dropped', dropped) ? 'bad' : ''));
        if (lost) cards.push(card(count(lost), 'forwarded, not inspected', isNew('lost', lost) ? 'warn' : ''));
        updateChildren(this.cards, state.stream ? this.streamCards(state, perSecond((from) => from.stream?.records ?? 0), serious) : cards);
    }

    private streamCards({ servers, sessions_seen_by_inspection: sessions, stream }: State, records: number, serious: number): HTMLElement[] {
        const players = servers.reduce((sum, server) => sum + server.players, 0);
        const cards = [card(count(servers.length), servers.length === 1 ? 'server' : 'servers'), card(count(players), 'players'),
            card(count(sessions), 'sessions'), card(count(Math.round(records)), 'records/s'),
            card(count(serious), 'warnings, errors', serious ? 'warn' : '')];
        if (stream?.left_out) cards.push(card(count(stream.left_out), 'records of servers beyond those shown', 'warn'));
        return cards;
    }

    private row(session: SessionState, old: SessionState | undefined, seconds: number): HTMLTableRowElement {
        const { state, source } = this.store;
        const key = state?.stream ? `${session.server_name ?? ''} ${session.number}` : `${session.number}`;
        const name = session.name || '–';
        const told: CellContext = { session, old, seconds, name: state?.stream ? `${name}${session.closed ? ' (left)' : ''}` : this.viewButton(name, 'view this session', session.number),
            grew: (counter, value) => this.growth.hasGrown(`${key} ${counter}`, value, state?.now_ms ?? 0) };
        const made = make('tr');
        for (const { room, cell } of this.columns()) {
            const content = cell(told);
            const td = typeof content === 'string' ? make('td', '', content) : content;
            td.classList.add(`room-${room}`);
            made.append(td);
        }
        made.classList.toggle('chosen', session.number === source);
        made.classList.toggle('left', session.closed);
        return keyed(key, made);
    }

    private columns(): readonly Column[] {
        return this.store.state?.stream ? COLUMNS.filter(({ inStream }) => inStream) : COLUMNS;
    }

    private wholeRow(content: Node): HTMLTableRowElement {
        const cell = make('td', '', content);
        cell.colSpan = COLUMNS.length;
        return row(cell);
    }

    private worldRow(): HTMLTableRowElement {
        // Below the name, because beside it the text would be cut off at the edge of the panel.
        const name = make('td', '', this.viewButton('all players', 'view all players (W)', WORLD),
            make('p', 'soft', `all sessions${this.ofServer(' of ')} as one game`));
        name.colSpan = COLUMNS.length - 1;
        const made = row('∗', name);
        made.classList.toggle('chosen', this.store.source === WORLD);
        return keyed(WORLD, made);
    }

    /** Returns the server of the world shown, if there are several servers. */
    private ofServer(before: string): string {
        const { worldServer } = this.store;
        return worldServer === null ? '' : shown(before + worldServer);
    }

    private viewButton(text: string, title: string, source: number): HTMLButtonElement {
        return linkButton(text, title, () => this.onSource(source));
    }

    /** Fills the list of sources. The current source stays in the list after it has ended, because the page still has its
     *  history. */
    private showSources(state: State): void {
        const { source } = this.store;
        const wanted = state.sessions.filter((session) => !session.closed)
            .map((session) => ({ value: session.number, text: `${session.number} ${session.name || session.client}` }));
        const first = wanted[0]?.value;
        if (first !== undefined || source === WORLD) wanted.unshift({ value: WORLD, text: `all players${this.ofServer(': ')}` });
        if (!wanted.some(({ value }) => value === source)) {
            if (first !== undefined && this.shownNothing()) return this.onSource(first);
            if (source > 0) wanted.push({ value: source, text: `${source} ${this.nameOf(state, source)} (left)` });
        }
        updateChildren(this.source, wanted.map(({ value, text }) => keyed(value, new Option(shown(text), `${value}`))));
        if (this.source.value !== `${source}`) this.source.value = `${source}`;
    }

    private shownNothing(): boolean {
        const { source, isLive, history } = this.store;
        return source < 0 || (isLive && history.length === 0);
    }

    private left = { number: 0, name: '' };

    /** Returns a session's player name. It is remembered, because twscope forgets sessions that have ended. */
    nameOf(state: State, number: number): string {
        const name = state.sessions.find((session) => session.number === number)?.name;
        if (name) this.left = { number, name };
        return this.left.number === number ? this.left.name : '';
    }
}
