// What is recorded, and the files that can be downloaded.
import { fetchJson, fetchOk, authorization, token } from './api';
import { withKey, updateChildren, makeButton, makeLinkButton, makeElement, numberCell, makeRow, saveFile, setChildren } from './dom';
import { formatTime, formatCount, formatSize, formatDuration } from './format';
import { allObjects } from './objects';
import { isPanelOpen, onPanelOpened, addPanel } from './panels';
import type { PageRecording, State } from './protocol';
import type { Store } from './store';

type Kind = 'capture' | 'demos';

interface RecordedFile { name: string; bytes: number; time_ms: number }

const REFRESH_MS = 2000;
const MAX_RECORDINGS = 100;

/** The list of the recordings in twscope's folders. */
class RecordingList {
    readonly element = makeElement('section');
    private readonly rows = makeElement('tbody');
    private readonly errorText = makeElement('p', 'bad');
    private requestedAt = 0;
    private isAvailable = false;

    constructor() {
        this.element.hidden = true;
        this.element.append(makeElement('h3', '', 'recorded'), this.errorText, makeElement('table', '', this.rows));
        onPanelOpened('recording', () => this.refresh());
    }

    /** Shows or hides the list. `isAvailable`: twscope has folders for recordings. */
    setAvailable(isAvailable: boolean): void {
        this.isAvailable = isAvailable;
        this.element.hidden = !isAvailable;
        if (isPanelOpen('recording') && performance.now() - this.requestedAt > REFRESH_MS) this.refresh();
    }

    refresh(): void {
        if (!this.isAvailable) return;
        this.requestedAt = performance.now();
        void fetchJson<{ files: RecordedFile[] }>('/api/recordings').then(({ files }) => this.show(files)).catch(() => this.show([]));
    }

    private show(files: readonly RecordedFile[]): void {
        if (files.length === 0) return updateChildren(this.rows, [makeRow(makeElement('td', 'soft', 'nothing yet'))]);
        updateChildren(this.rows, files.slice(0, MAX_RECORDINGS).map((file) => {
            const name = makeLinkButton(file.name, `download ${file.name}`, () => void this.download(file.name));
            name.disabled = !token;
            return withKey(file.name, makeRow(makeElement('td', '', name), numberCell(formatSize(file.bytes)), makeElement('td', 'soft', formatTime(file.time_ms))));
        }));
    }

    /** Downloads a file by a request, because a link cannot send the token. */
    private async download(name: string): Promise<void> {
        this.errorText.textContent = '';
        try {
            const answer = await fetch(`/api/recording?name=${encodeURIComponent(name)}`, { cache: 'no-store', headers: authorization });
            if (!answer.ok) throw new Error((await answer.text()).trim());
            saveFile(await answer.blob(), name);
        } catch (error) {
            this.errorText.textContent = `${name}: ${(error as Error).message}`;
        }
    }
}

export class Recording {
    private readonly body = addPanel('recording', 'recording', 'R');
    private readonly list = makeElement('dl', 'facts');
    private readonly switches = makeElement('div', 'presets');
    private readonly buttons = { capture: this.makeSwitchButton('capture'), demos: this.makeSwitchButton('demos'),
        flight: makeButton('save the last minute', 'what the flight recorder holds, for all sessions', () => void this.postRequest('/api/flight')) };
    private readonly resultText = makeElement('p');
    private readonly note = makeElement('p', 'soft');
    private readonly files = new RecordingList();

    constructor(private readonly store: Store) {
        this.resultText.setAttribute('role', 'status');
        this.switches.append(this.buttons.capture, this.buttons.demos, this.buttons.flight);
        this.body.append(this.list, makeElement('h3', '', 'record'), this.switches, this.resultText, this.note, this.files.element, makeElement('h3', '', 'this view'),
            makeElement('p', 'soft', 'The snapshots and findings of the last ten minutes of this view, as JSON.'),
            makeButton('save what this page has seen', 'as JSON lines', () => this.saveView()));
        store.on('state', () => this.show());
    }

    private makeSwitchButton(kind: Kind): HTMLButtonElement {
        const made = makeButton(`start ${kind}`, '', () => {
            const on = made.getAttribute('aria-pressed') !== 'true';
            void this.postRequest(`/api/recordings?${kind}=${on ? 'on' : 'off'}`);
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
        const fact = (name: string, value: string, className = ''): void => { parts.push(makeElement('dt', '', name), makeElement('dd', className, value)); };
        fact('records', output ? `${output}${failed ? ', stopped' : ''}` : 'nowhere: start twscope with -o FILE', failed ? 'bad' : '');
        if (lost) fact('records lost', formatCount(lost), 'bad');
        for (const [kind, since] of [['capture', page?.capture_since_ms], ['demos', page?.demos_since_ms]] as const) {
            if (since) fact(kind, `since ${formatTime(since)}, for ${formatDuration((state.now_ms - since) / 1000)}`, 'good');
        }
        if (page?.lost) fact('datagrams, snapshots, blocks lost', formatCount(page.lost), 'bad');
        if (page?.stopped) fact('stopped', page.stopped, 'bad');
        fact('kept here', `${formatCount(history.length)} frames, ${formatSize(history.memory)}`);
        fact('frames this page could not keep', formatCount(this.store.framesLost), this.store.framesLost ? 'warn' : '');
        fact('viewers', formatCount(state.viewers));
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

    private async postRequest(path: string): Promise<void> {
        try {
            this.resultText.textContent = (await (await fetchOk(path, { method: 'POST' })).text()).trim();
            this.resultText.className = 'good';
            this.files.refresh();
        } catch (error) {
            this.resultText.textContent = (error as Error).message;
            this.resultText.className = 'bad';
        }
    }

    /** Saves the history as lines of JSON: the table of objects, each frame with its changes, and the findings. */
    private saveView(): void {
        const { history, marks, source, state } = this.store;
        const lines = [JSON.stringify({ k: 'view', version: state?.version, session: source, objects: allObjects() })];
        for (let index = 0; index < history.length; ++index) lines.push(JSON.stringify(history.frameAt(index)));
        for (const mark of marks) if (this.store.isAboutSource(mark)) lines.push(JSON.stringify({ k: 'finding', ...mark }));
        saveFile(new Blob([lines.join('\n'), '\n'], { type: 'application/x-ndjson' }), `twscope-view-${source}.jsonl`);
    }
}
