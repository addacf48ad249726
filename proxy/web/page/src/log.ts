// Messages and findings as they arrive; chat is shown as chat.
import { Completion } from './completion';
import { makeButton, makeElement, visibleText } from './dom';
import { itemText, type FindingItem } from './findings';
import { formatRaceTime } from './format';
import { isPanelOpen, onPanelOpened, addPanel } from './panels';
import type { LogLine } from './protocol';
import { WORLD, type Store } from './store';

// Leaves out messages that some games send many times a second, or at every respawn.
const FREQUENT_MESSAGES = ['sv_weapon_pickup', 'sv_emoticon', 'sv_tune_params', 'sv_command_info', 'cl_show_distance', 'cl_camera_info'];
const DEFAULT_FILTER = `finding or session or map or impairment or (message and vital and ${FREQUENT_MESSAGES.map((name) => `name != ${name}`).join(' and ')})`;
const FILTER_STORAGE_KEY = 'twscope-filter';
const MAX_LINES = 400;
const HIDDEN_KEYS = new Set(['v', 't', 'type', 'session', 'dir', 'name', 'layer', 'system', 'vital', 'seq', 'size', 'fields', 'names', 'id', 'severity']);

/** Fields that contain the number of a player. */
const PLAYER_FIELDS = new Set(['client_id', 'killer', 'victim']);
/** Fields that contain a time in milliseconds, or the difference of two. */
const TIME_FIELDS = new Set(['sv_race_finish.time', 'sv_race_finish.diff', 'sv_checkpoint.diff']);
/** A message that the server sends to all players reaches them within this time. */
const MERGE_MS = 200;
const MAX_COMPARED_LINES = 40; // number of lines that are compared with a new one

/** A line of the log, and the sessions that received it. */
interface ShownLine { line: LogLine; sessions: number[]; mergeKey: string; element: HTMLLIElement }

const mergeKeyOf = ({ type, name, dir, fields }: LogLine): string =>
    (type === 'message' && dir === 's2c' ? JSON.stringify([name, fields]) : '');

export class Log {
    private readonly body = addPanel('log', 'log', 'M');
    private readonly input = makeElement('input');
    private readonly error = makeElement('p', 'bad');
    private readonly lines = makeElement('ol', 'lines');
    private readonly note = makeElement('p', 'soft');
    private isScrolledUp = false;
    /** The records of the shown lines, one for each element of `lines`. */
    private shownLines: LogLine[] = [];
    /** The newest lines shown. A new line with the same text is merged into one of them. */
    private latestLines: ShownLine[] = [];
    private linesBeforeReconnect = new Set<string>();
    /** Names by player number in the current source, including players who have left. */
    private readonly names = new Map<number, string>();

    constructor(private readonly store: Store, private readonly onFilter: (filter: string) => void) {
        this.input.id = 'filter';
        this.input.value = sessionStorage.getItem(FILTER_STORAGE_KEY) ?? DEFAULT_FILTER;
        this.input.spellcheck = false;
        this.input.autocomplete = 'off';
        this.input.setAttribute('aria-label', 'log filter');
        this.input.setAttribute('aria-describedby', 'filter-error');
        this.error.id = 'filter-error';
        this.error.setAttribute('role', 'status');
        this.lines.setAttribute('role', 'log');
        const form = makeElement('form', 'filter', this.input);
        form.append(makeButton('usual', 'the usual filter', () => { this.input.value = DEFAULT_FILTER; this.applyFilter(); }),
            makeButton('chat', 'only chat', () => { this.input.value = 'name == sv_chat'; this.applyFilter(); }),
            makeButton('clear', 'clear the log', () => this.clear()));
        form.addEventListener('submit', (event) => { event.preventDefault(); this.applyFilter(); });
        new Completion(this.input);
        this.input.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); this.applyFilter(); } });
        this.body.append(form, this.error, this.note, this.lines);
        this.lines.addEventListener('scroll', () => {
            this.isScrolledUp = this.lines.scrollTop + this.lines.clientHeight < this.lines.scrollHeight - 30;
            this.note.textContent = this.isScrolledUp ? 'scrolled up: resumes at the end' : '';
        });
        onPanelOpened('log', () => this.scrollToEnd());
        store.on('source', () => this.names.clear());
        store.on('state', () => { for (const { id } of store.latest.all('client_info')) this.names.set(id, store.latest.playerName(id)); });
    }

    get filter(): string { return this.input.value.trim(); }

    focus(): void { this.input.focus(); }

    private applyFilter(): void {
        sessionStorage.setItem(FILTER_STORAGE_KEY, this.input.value);
        this.error.textContent = '';
        this.input.removeAttribute('aria-invalid');
        this.clear();
        this.onFilter(this.filter);
    }

    private clear(): void {
        this.lines.replaceChildren();
        this.shownLines = [];
        this.latestLines = [];
        this.linesBeforeReconnect.clear();
    }

    /** Called when the connection is restored. twscope then sends lines again that are already shown. */
    onReconnected(): void { this.linesBeforeReconnect = new Set(this.shownLines.map((line) => JSON.stringify(line))); }

    showFilterError(message: string, offset: number): void {
        this.error.textContent = message;
        this.input.setAttribute('aria-invalid', 'true');
        if (document.activeElement === this.input) this.input.setSelectionRange(offset, offset);
    }

    addLines(lines: readonly LogLine[], lost: number): void {
        const fresh = lines.slice(-MAX_LINES).filter((line) => this.linesBeforeReconnect.size === 0 || !this.linesBeforeReconnect.has(JSON.stringify(line)));
        this.shownLines = [...this.shownLines, ...fresh].slice(-MAX_LINES);
        if (fresh.length > 0) this.linesBeforeReconnect.clear(); // no later line was shown before
        const made = fresh.flatMap((line) => (this.mergeIntoShown(line) ? [] : [this.makeLineElement(line)]));
        if (lost > 0) made.push(makeElement('li', 'warn', `${lost} ${lost === 1 ? 'record' : 'records'} skipped: too many at once`));
        this.lines.append(...made);
        while (this.lines.childElementCount > MAX_LINES) this.lines.firstElementChild?.remove();
        if (isPanelOpen('log')) this.scrollToEnd();
    }

    private scrollToEnd(): void {
        if (!this.isScrolledUp) this.lines.scrollTop = this.lines.scrollHeight;
    }

    /** Adds the session to the shown line with the same text. Returns false if there is no such line. */
    private mergeIntoShown(line: LogLine): boolean {
        const same = mergeKeyOf(line);
        const found = same === '' ? undefined : this.latestLines.findLast((each) => each.mergeKey === same && !each.sessions.includes(line.session)
            && Math.abs(Date.parse(line.t) - Date.parse(each.line.t)) < MERGE_MS);
        if (!found) return false;
        found.sessions.push(line.session);
        if (this.knowsNames(line.session)) found.line = line;
        const summary = found.element.querySelector('summary');
        if (summary) summary.replaceChildren(...this.summaryNodes(found.line, found.sessions));
        return true;
    }

    /** Makes the element of a line. A line that another program published may lack the fields of its type. */
    private makeLineElement(line: LogLine): HTMLLIElement {
        try {
            const element = this.makeListItem(line);
            this.latestLines = [...this.latestLines, { line, sessions: [line.session], mergeKey: mergeKeyOf(line), element }].slice(-MAX_COMPARED_LINES);
            return element;
        } catch {
            return makeElement('li', '', JSON.stringify(line));
        }
    }

    private summaryNodes(line: LogLine, sessions: readonly number[]): Node[] {
        return [makeElement('time', 'soft', line.t.slice(11, 23)), makeElement('span', '', ' '), this.sessionLabel(sessions), makeElement('span', '', ' ', ...this.lineText(line))];
    }

    private makeListItem(line: LogLine): HTMLLIElement {
        const summary = makeElement('summary', '', ...this.summaryNodes(line, [line.session]));
        const details = makeElement('details', '', summary);
        details.addEventListener('toggle', () => {
            if (details.open && details.childElementCount === 1) details.append(makeElement('pre', '', JSON.stringify(line, null, 2)));
        });
        return makeElement('li', this.cssClassOf(line), details);
    }

    /** Whether players' names are known for this session. Each server numbers its players, so only names of the current source
     *  are used. */
    private knowsNames(session: number): boolean {
        const { source, state } = this.store;
        return session === source || (source === WORLD && (state?.servers.length ?? 0) < 2);
    }

    /** Shows the player of the session, or the number of players who received the line. */
    private sessionLabel(sessions: readonly number[]): HTMLElement {
        const names = sessions.filter((number) => number > 0).map((number) => this.nameOf(number));
        const made = makeElement('span', 'who', names.length > 1 ? `${names.length} players` : names[0] ?? '');
        made.title = sessions.length > 0 && names.length > 0 ? `sessions ${sessions.map((number, index) => `${number} (${names[index] ?? ''})`).join(', ')}` : '';
        return made;
    }

    private nameOf(session: number): string {
        return this.store.state?.sessions.find(({ number }) => number === session)?.name || `${session}`;
    }

    private playerText(session: number, client: number): string {
        return this.knowsNames(session) && (this.store.latest.playerName(client) || this.names.get(client)) || `client ${client}`;
    }

    /** `names`: names of the values of some fields. */
    private fieldsText(session: number, values: Record<string, unknown>, message = '', names: Record<string, unknown> = {}): string {
        const shownValue = (key: string, value: unknown): string => {
            if (TIME_FIELDS.has(`${message}.${key}`) && typeof value === 'number') return key === 'time' && value < 0 ? '–' : formatRaceTime(value);
            if (PLAYER_FIELDS.has(key) && typeof value === 'number' && value >= 0) return this.playerText(session, value);
            if (typeof names[key] === 'string') return names[key];
            return typeof value === 'string' ? `“${value}”` : JSON.stringify(value);
        };
        return Object.entries(values).filter(([, value]) => value !== '').map(([key, value]) => `${key} ${shownValue(key, value)}`).join(', ');
    }

    private cssClassOf(line: LogLine): string {
        if (line.type === 'finding') return `finding ${String(line['severity'])}`;
        return line['name'] === 'sv_chat' ? 'chat' : line.type;
    }

    /** What the finding means, and the item it is about; a click on the line shows its other fields. Empty if its meaning is
     *  unknown: the state with the first finding of a kind may arrive after the line. */
    private findingText(line: LogLine): string {
        const item = line['item'] as FindingItem | undefined;
        const sentence = this.store.state?.findings.find(({ id }) => id === line['id'])?.sentence;
        if (sentence === undefined) return '';
        return item ? `${itemText(item, line['field'] as string | undefined)}: ${sentence}` : sentence;
    }

    private lineText(line: LogLine): (Node | string)[] {
        const fields = line['fields'] as Record<string, unknown> | undefined;
        if (line['name'] === 'sv_chat' && fields) {
            const from = Number(fields['client_id']);
            return [makeElement('b', '', from < 0 ? '∗∗∗' : this.playerText(line.session, from)), ' ', visibleText(String(fields['message']))];
        }
        const name = String(line.type === 'finding' ? line['id'] : line['name'] ?? line['event'] ?? '');
        const rest = Object.fromEntries(Object.entries(line).filter(([key, value]) => !HIDDEN_KEYS.has(key) && key !== 'event' && value !== ''));
        const meaning = line.type === 'finding' ? this.findingText(line) : '';
        const said = meaning !== '' ? meaning : fields && Object.keys(fields).length > 0 ? this.fieldsText(line.session, fields, String(line['name']), line['names'] as Record<string, unknown> | undefined) : line.type === 'message' ? '' : this.fieldsText(line.session, rest);
        return [makeElement('b', 'kind', line.type === 'message' ? `${line['dir'] === 'c2s' ? '→' : '←'} ${name}` : line.type === 'finding' ? name : `${line.type} ${name}`), ' ',
            makeElement('span', 'soft', said.length > 300 ? `${said.slice(0, 300)} …` : said)];
    }
}
