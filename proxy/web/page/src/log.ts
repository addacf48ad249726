// Messages and findings as they come, chat as chat.
import { Completion } from './complete';
import { button, make, shown } from './dom';
import { isOpen, onOpened, panel } from './panels';
import type { LogLine } from './protocol';
import { WORLD, type Store } from './store';

const USUAL = 'finding or session or map or impairment or (message and vital)';
const KEPT = 'twscope-filter';
const MAX_LINES = 400;
const HIDDEN_KEYS = new Set(['v', 't', 'type', 'session', 'dir', 'name', 'layer', 'system', 'vital', 'seq', 'size', 'fields', 'names', 'id', 'severity']);

const compact = (value: unknown): string =>
    Object.entries(value as Record<string, unknown>).map(([key, each]) => `${key} ${typeof each === 'string' ? `“${each}”` : JSON.stringify(each)}`).join(', ');

export class Log {
    private readonly body = panel('log', 'log', 'M');
    private readonly input = make('input');
    private readonly error = make('p', 'bad');
    private readonly lines = make('ol', 'lines');
    private readonly note = make('p', 'soft');
    private stopped = false;
    /** What is shown, as many as `lines` has; and, after the connection was lost, what of it may come once more. */
    private shownLines: LogLine[] = [];
    private before = new Set<string>();

    constructor(private readonly store: Store, private readonly onFilter: (filter: string) => void) {
        this.input.id = 'filter';
        this.input.value = sessionStorage.getItem(KEPT) ?? USUAL;
        this.input.spellcheck = false;
        this.input.autocomplete = 'off';
        this.input.setAttribute('aria-label', 'log filter');
        this.input.setAttribute('aria-describedby', 'filter-error');
        this.error.id = 'filter-error';
        this.error.setAttribute('role', 'status');
        this.lines.setAttribute('role', 'log');
        const form = make('form', 'filter', this.input);
        form.append(button('usual', 'the usual filter', () => { this.input.value = USUAL; this.apply(); }),
            button('chat', 'only chat', () => { this.input.value = 'name == sv_chat'; this.apply(); }),
            button('clear', 'clear the log', () => this.clear()));
        form.addEventListener('submit', (event) => { event.preventDefault(); this.apply(); });
        new Completion(this.input);
        this.input.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); this.apply(); } });
        this.body.append(form, this.error, this.note, this.lines);
        this.lines.addEventListener('scroll', () => {
            this.stopped = this.lines.scrollTop + this.lines.clientHeight < this.lines.scrollHeight - 30;
            this.note.textContent = this.stopped ? 'scrolled up: resumes at the end' : '';
        });
        onOpened('log', () => this.toEnd());
    }

    get filter(): string { return this.input.value.trim(); }

    focus(): void { this.input.focus(); }

    private apply(): void {
        sessionStorage.setItem(KEPT, this.input.value);
        this.error.textContent = '';
        this.input.removeAttribute('aria-invalid');
        this.clear();
        this.onFilter(this.filter);
    }

    private clear(): void {
        this.lines.replaceChildren();
        this.shownLines = [];
        this.before.clear();
    }

    /** The connection is there again: twscope begins with what it still has. */
    again(): void { this.before = new Set(this.shownLines.map((line) => JSON.stringify(line))); }

    complain(message: string, offset: number): void {
        this.error.textContent = message;
        this.input.setAttribute('aria-invalid', 'true');
        if (document.activeElement === this.input) this.input.setSelectionRange(offset, offset);
    }

    add(lines: readonly LogLine[], lost: number): void {
        const fresh = lines.slice(-MAX_LINES).filter((line) => this.before.size === 0 || !this.before.has(JSON.stringify(line)));
        this.shownLines = [...this.shownLines, ...fresh].slice(-MAX_LINES);
        if (fresh.length > 0) this.before.clear(); // what comes from now on is newer
        const made = fresh.map((line) => this.shown(line));
        if (lost > 0) made.push(make('li', 'warn', `${lost} more than could be shown`));
        this.lines.append(...made);
        while (this.lines.childElementCount > MAX_LINES) this.lines.firstElementChild?.remove();
        if (isOpen('log')) this.toEnd();
    }

    private toEnd(): void {
        if (!this.stopped) this.lines.scrollTop = this.lines.scrollHeight;
    }

    /** What somebody else published may be a record in its form alone. */
    private shown(line: LogLine): HTMLLIElement {
        try {
            return this.line(line);
        } catch {
            return make('li', '', JSON.stringify(line));
        }
    }

    private line(line: LogLine): HTMLLIElement {
        const time = line.t.slice(11, 23);
        const summary = make('summary', '', make('time', 'soft', time), ' ', this.session(line.session), ' ', ...this.words(line));
        const details = make('details', '', summary);
        details.addEventListener('toggle', () => {
            if (details.open && details.childElementCount === 1) details.append(make('pre', '', JSON.stringify(line, null, 2)));
        });
        return make('li', this.kind(line), details);
    }

    /** Players are numbered by their server, and not even by it alone: names are of what is looked at, and no other's. */
    private knows(session: number): boolean {
        const { source, state } = this.store;
        return session === source || (source === WORLD && (state?.servers.length ?? 0) < 2);
    }

    private session(number: number): HTMLElement {
        const made = make('span', 'session', number ? `${number}` : '');
        made.title = number ? `session ${number}` : '';
        return made;
    }

    private kind(line: LogLine): string {
        if (line.type === 'finding') return `finding ${String(line['severity'])}`;
        return line['name'] === 'sv_chat' ? 'chat' : line.type;
    }

    private words(line: LogLine): (Node | string)[] {
        const fields = line['fields'] as Record<string, unknown> | undefined;
        if (line['name'] === 'sv_chat' && fields) {
            const from = Number(fields['client_id']);
            return [make('b', '', from < 0 ? '∗∗∗' : this.knows(line.session) && this.store.latest.playerName(from) || `#${from}`), ' ', shown(String(fields['message']))];
        }
        const name = [line['id'], line['name'] ?? line['event']].filter((each) => each !== undefined).join(' ');
        const rest = Object.fromEntries(Object.entries(line).filter(([key, value]) => !HIDDEN_KEYS.has(key) && key !== 'event' && value !== ''));
        const said = fields && Object.keys(fields).length > 0 ? compact(fields) : line.type === 'message' ? '' : compact(rest);
        return [make('b', 'kind', line.type === 'message' ? `${line['dir'] === 'c2s' ? '→' : '←'} ${name}` : line.type === 'finding' ? name : `${line.type} ${name}`), ' ',
            make('span', 'soft', said.length > 300 ? `${said.slice(0, 300)} …` : said)];
    }
}
