// The twscope this page is of: another version brings another page, and whoever starts anew has a table of objects of its own.
import { loadObjects } from './objects';
import { isSameObserver, type State } from './protocol';
import type { Store } from './store';

const AGAIN_MS = 1000;

export class Twin {
    private state: State | null = null;
    /** What comes is of another version than this page. */
    isGone = false;

    constructor(private readonly store: Store, private readonly onObjects: () => void) {
        store.on('moment', () => { if (this.isGone && store.isLive) location.reload(); });
    }

    load(): void {
        void loadObjects().then(this.onObjects).catch(() => setTimeout(() => this.load(), AGAIN_MS));
    }

    /** Whether the page cannot read what comes any more. Then it begins anew; paused not before it is live again. */
    isOther(state: State): boolean {
        const before = this.state;
        this.state = state;
        if (before && before.version !== state.version) {
            this.isGone = true;
            if (this.store.isLive) location.reload();
        } else if (before && !isSameObserver(before, state)) {
            this.load();
        }
        return this.isGone;
    }
}
