// The recordings in twscope's folders.
import { askJson } from './api';
import { linkButton, make, number, row, save } from './dom';
import { clock, size } from './format';
import { isOpen, onOpened } from './panels';
import { keyed, settle } from './settle';
import { authorization, token } from './token';

interface File { name: string; bytes: number; time_ms: number }

const EVERY_MS = 2000;
const MOST_ROWS = 100;

export class Shelf {
    readonly element = make('section');
    private readonly rows = make('tbody');
    private readonly said = make('p', 'bad');
    private asked = 0;
    private there = false;

    constructor() {
        this.element.hidden = true;
        this.element.append(make('h3', '', 'recorded'), this.said, make('table', '', this.rows));
        onOpened('recording', () => this.refresh());
    }

    /** Shows or hides the list. `there`: twscope has folders for recordings. */
    setAvailable(there: boolean): void {
        this.there = there;
        this.element.hidden = !there;
        if (isOpen('recording') && performance.now() - this.asked > EVERY_MS) this.refresh();
    }

    refresh(): void {
        if (!this.there) return;
        this.asked = performance.now();
        void askJson<{ files: File[] }>('/api/recordings').then(({ files }) => this.show(files)).catch(() => this.show([]));
    }

    private show(files: readonly File[]): void {
        if (files.length === 0) return settle(this.rows, [row(make('td', 'soft', 'nothing yet'))]);
        settle(this.rows, files.slice(0, MOST_ROWS).map((file) => {
            const name = linkButton(file.name, `download ${file.name}`, () => void this.fetch(file.name));
            name.disabled = !token;
            return keyed(file.name, row(make('td', '', name), number(size(file.bytes)), make('td', 'soft', clock(file.time_ms))));
        }));
    }

    /** Downloads a file by a request, because a link cannot send the token. */
    private async fetch(name: string): Promise<void> {
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
