// What is written down, and what of it can be had from here.
import { fill, make } from './dom';
import { count, size } from './format';
import { panel } from './panels';
import type { Store } from './store';

export class Recording {
    private readonly body = panel('recording', 'recording', 'R');
    private readonly list = make('dl', 'facts');

    constructor(private readonly store: Store) {
        const save = make('button', 'primary', 'save what this page has seen');
        save.type = 'button';
        save.addEventListener('click', () => this.save());
        this.body.append(this.list, make('h3', '', 'this view'),
            make('p', 'soft', 'The snapshots and findings of the last ten minutes of this view, as JSON.'), save);
        store.on('state', () => this.show());
    }

    private show(): void {
        const { state, history } = this.store;
        if (!state) return;
        const { output, failed, lost } = state.recording;
        const parts: Node[] = [];
        const fact = (name: string, value: string, className = ''): void => { parts.push(make('dt', '', name), make('dd', className, value)); };
        fact('records', output ? `${output}${failed ? ', stopped' : ''}` : 'nowhere: start twscope with -o FILE', failed ? 'bad' : '');
        if (lost) fact('records lost', count(lost), 'bad');
        fact('kept here', `${count(history.length)} frames, ${size(history.memory)}`);
        fact('frames too many for this page', count(this.store.framesLost), this.store.framesLost ? 'warn' : '');
        fact('viewers', count(state.viewers));
        fill(this.list, parts);
    }

    /** A file of lines: each frame with its changes, as they came, and the findings. */
    private save(): void {
        const { history, marks, source } = this.store;
        const lines: string[] = [];
        for (let index = 0; index < history.length; ++index) lines.push(JSON.stringify(history.rowAt(index)));
        for (const mark of marks) lines.push(JSON.stringify({ k: 'finding', ...mark }));
        const link = make('a');
        link.href = URL.createObjectURL(new Blob([lines.join('\n'), '\n'], { type: 'application/x-ndjson' }));
        link.download = `twscope-view-${source}.jsonl`;
        link.click();
        URL.revokeObjectURL(link.href);
    }
}
