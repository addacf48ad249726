// What is recorded, and the files that can be downloaded.
import { fetchJson, fetchOk } from './api';
import { keyed, updateChildren } from './children';
import { button, linkButton, make, number, row, save, setChildren } from './dom';
import { clock, count, size, span } from './format';
import { allObjects } from './objects';
import { isOpen, onOpened, panel } from './panels';
import type { PageRecording, State } from './protocol';
import type { Store } from './store';
import { authorization, token } from './token';

type Kind = 'capture' | 'demos';

interface RecordedFile { name: string; bytes: number; time_ms: number }

const REFRESH_MS = 2000;
const MOST_ROWS = 100;

/** The list of the recordings in twscope's folders. */
class RecordingList {
    readonly element = make('section');
    private readonly rows = make('tbody');
    private readonly said = make('p', 'bad');
    private requestedAt = 0;
    private isAvailable = false;

    constructor() {
        this.element.hidden = true;
        this.element.append(make('h3', '', 'recorded'), this.said, make('table', '', this.rows));
        onOpened('recording', () => this.refresh());
    }

    /** Shows or hides the list. `isAvailable`: twscope has folders for recordings. */
    setAvailable(isAvailable: boolean): void {
        this.isAvailable = isAvailable;
        this.element.hidden = !isAvailable;
        if (isOpen('recording') && performance.now() - this.requestedAt > REFRESH_MS) this.refresh();
    }

    refresh(): void {
        if (!this.isAvailable) return;
        this.requestedAt = performance.now();
        void fetchJson<{ files: RecordedFile[] }>('/api/recordings').then(({ files }) => this.show(files)).catch(() => this.show([]));
    }

    private show(files: readonly RecordedFile[]): void {
        if (files.length === 0) return updateChildren(this.rows, [row(make('td', 'soft', 'nothing yet'))]);
        updateChildren(this.rows, files.slice(0, MOST_ROWS).map((file) => {
            const name = linkButton(file.name, `download ${file.name}`, () => void this.download(file.name));
            name.disabled = !token;
            return keyed(file.name, row(make('td', '', name), number(size(file.bytes)), make('td', 'soft', clock(file.time_ms))));
        }));
    }

    /** Downloads a file by a request, because a link cannot send the token. */
    private async download(name: string): Promise<void> {
        this.said.textContent = '';
        try {
            const answer = await fetch(`/api/recording?name=${encodeURIComponent(name)}`, { cache: 'no-store', headers: authorization });
            if (!answer.ok) throw new Error((await answer.text()).trim());
            save(await answer.blob(), name);
        } catch (error) {
            this.said.textContent = `${name}: ${(error as Error).message}`;
        }
    }
}

export class Recording {
    private readonly body = panel('recording', 'recording', 'R');
    private readonly list = make('dl', 'facts');
    private readonly switches = make('div', 'presets');
    private readonly buttons = { capture: this.switchButton('capture'), demos: this.switchButton('demos'),
        flight: button('save the last minute', 'what the flight recorder holds, for all sessions', () => void this.act('/api/flight')) };
    private readonly said = make('p');
    private readonly note = make('p', 'soft');
    private readonly files = new RecordingList();

    constructor(private readonly store: Store) {
        this.said.setAttribute('role', 'status');
        this.switches.append(this.buttons.capture, this.buttons.demos, this.buttons.flight);
        this.body.append(this.list, make('h3', '', 'record'), this.switches, this.said, this.note, this.files.element, make('h3', '', 'this view'),
            make('p', 'soft', 'The snapshots and findings of the last ten minutes of this view, as JSON.'),
            button('save what this page has seen', 'as JSON lines', () => this.saveView()));
        store.on('state', () => this.show());
    }

    private switchButton(kind: Kind): HTMLButtonElement {
        const made = button(`start ${kind}`, '', () => {
            const on = made.getAttribute('aria-pressed') !== 'true';
            void this.act(`/api/recordings?${kind}=${on ? 'on' : 'off'}`);
        });
        made.id = `record-${kind}`;
        made.setAttribute('aria-pressed', 'false');
        return made;
    }

    private show(): void {
        const { state, history } = this.store;
        if (!state) return;
        const { output, failed, lost, page } = state.recording;
        const parts: Node[] = [];
        const fact = (name: string, value: string, className = ''): void => { parts.push(make('dt', '', name), make('dd', className, value)); };
        fact('records', output ? `${output}${failed ? ', stopped' : ''}` : 'nowhere: start twscope with -o FILE', failed ? 'bad' : '');
        if (lost) fact('records lost', count(lost), 'bad');
        for (const [kind, since] of [['capture', page?.capture_since_ms], ['demos', page?.demos_since_ms]] as const) {
            if (since) fact(kind, `since ${clock(since)}, for ${span((state.now_ms - since) / 1000)}`, 'good');
        }
        if (page?.lost) fact('datagrams, snapshots, blocks lost', count(page.lost), 'bad');
        if (page?.stopped) fact('stopped', page.stopped, 'bad');
        fact('kept here', `${count(history.length)} frames, ${size(history.memory)}`);
        fact('frames this page could not keep', count(this.store.framesLost), this.store.framesLost ? 'warn' : '');
        fact('viewers', count(state.viewers));
        setChildren(this.list, parts);
        this.showSwitches(state, page);
        this.files.setAvailable(page !== null || state.recording.flight);
    }

    private showSwitches({ recording }: State, page: PageRecording | null): void {
        const { capture, demos, flight } = this.buttons;
        for (const [kind, made, since] of [['capture', capture, page?.capture_since_ms], ['demos', demos, page?.demos_since_ms]] as const) {
            made.setAttribute('aria-pressed', String(Boolean(since)));
            made.textContent = `${since ? 'stop' : 'start'} ${kind}`;
        }
        capture.disabled = !token || !page?.captures;
        demos.disabled = !token || !page;
        flight.disabled = !token || !recording.flight;
        const missing: string[] = [];
        if (!token) missing.push('This requires the token: open the page at the address that twscope printed at start.');
        if (!page) missing.push('Captures and demos need a folder: start twscope with --http-recordings DIR.');
        else if (!page.captures) missing.push('A capture contains passwords and whispers, so it requires --show-secrets.');
        if (!recording.flight) missing.push('To keep the last minute, start twscope with --flight 60s,64MiB DIR.');
        this.note.textContent = missing.join(' ');
    }

    private async act(path: string): Promise<void> {
        try {
            this.said.textContent = (await (await fetchOk(path, { method: 'POST' })).text()).trim();
            this.said.className = 'good';
            this.files.refresh();
        } catch (error) {
            this.said.textContent = (error as Error).message;
            this.said.className = 'bad';
        }
    }

    /** Saves the history as lines of JSON: the table of objects, each frame with its changes, and the findings. */
    private saveView(): void {
        const { history, marks, source, state } = this.store;
        const lines = [JSON.stringify({ k: 'view', version: state?.version, session: source, objects: allObjects() })];
        for (let index = 0; index < history.length; ++index) lines.push(JSON.stringify(history.rowAt(index)));
        for (const mark of marks) if (this.store.isAboutSource(mark)) lines.push(JSON.stringify({ k: 'finding', ...mark }));
        save(new Blob([lines.join('\n'), '\n'], { type: 'application/x-ndjson' }), `twscope-view-${source}.jsonl`);
    }
}
