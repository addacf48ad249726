// What is recorded, and the files that can be downloaded.
import { ask } from './api';
import { button, fill, make, save } from './dom';
import { clock, count, size, span } from './format';
import { allObjects } from './objects';
import { panel } from './panels';
import type { PageRecording, State } from './protocol';
import { Shelf } from './shelf';
import type { Store } from './store';
import { token } from './token';

type Kind = 'capture' | 'demos';
const TITLES: Record<Kind, string> = { capture: 'capture', demos: 'demos' };

export class Recording {
    private readonly body = panel('recording', 'recording', 'R');
    private readonly list = make('dl', 'facts');
    private readonly switches = make('div', 'presets');
    private readonly buttons = { capture: this.switchButton('capture'), demos: this.switchButton('demos'),
        flight: button('save the last minute', 'what the flight recorder holds, for all sessions', () => void this.act('/api/flight')) };
    private readonly said = make('p');
    private readonly note = make('p', 'soft');
    private readonly shelf = new Shelf();

    constructor(private readonly store: Store) {
        this.said.setAttribute('role', 'status');
        this.switches.append(this.buttons.capture, this.buttons.demos, this.buttons.flight);
        this.body.append(this.list, make('h3', '', 'record'), this.switches, this.said, this.note, this.shelf.element, make('h3', '', 'this view'),
            make('p', 'soft', 'The snapshots and findings of the last ten minutes of this view, as JSON.'),
            button('save what this page has seen', 'as JSON lines', () => this.saveView()));
        store.on('state', () => this.show());
    }

    private switchButton(kind: Kind): HTMLButtonElement {
        const made = button(`start ${TITLES[kind]}`, '', () => {
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
            if (since) fact(TITLES[kind], `since ${clock(since)}, for ${span((state.now_ms - since) / 1000)}`, 'good');
        }
        if (page?.lost) fact('datagrams, snapshots, blocks lost', count(page.lost), 'bad');
        if (page?.stopped) fact('stopped', page.stopped, 'bad');
        fact('kept here', `${count(history.length)} frames, ${size(history.memory)}`);
        fact('frames this page could not keep', count(this.store.framesLost), this.store.framesLost ? 'warn' : '');
        fact('viewers', count(state.viewers));
        fill(this.list, parts);
        this.showSwitches(state, page);
        this.shelf.setAvailable(page !== null || state.recording.flight);
    }

    private showSwitches({ recording }: State, page: PageRecording | null): void {
        const { capture, demos, flight } = this.buttons;
        for (const [kind, made, since] of [['capture', capture, page?.capture_since_ms], ['demos', demos, page?.demos_since_ms]] as const) {
            made.setAttribute('aria-pressed', String(Boolean(since)));
            made.textContent = `${since ? 'stop' : 'start'} ${TITLES[kind]}`;
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
            this.said.textContent = (await (await ask(path, { method: 'POST' })).text()).trim();
            this.said.className = 'good';
            this.shelf.refresh();
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
        for (const mark of marks) if (this.store.has(mark)) lines.push(JSON.stringify({ k: 'finding', ...mark }));
        save(new Blob([lines.join('\n'), '\n'], { type: 'application/x-ndjson' }), `twscope-view-${source}.jsonl`);
    }
}
