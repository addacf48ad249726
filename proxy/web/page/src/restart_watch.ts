// Detects that twscope was restarted: another version needs another page, and a new run has another table of objects.
import { loadObjects } from './objects';
import { isSameObserver, type State } from './protocol';
import type { Store } from './store';

const RETRY_MS = 1000;

export class RestartWatch {
    private state: State | null = null;
    /** Whether twscope's messages come from another version than this page. */
    isOutdated = false;

    constructor(private readonly store: Store, private readonly onObjects: () => void) {
        store.on('moment', () => { if (this.isOutdated && store.isLive) location.reload(); });
    }

    loadObjectTable(): void {
        void loadObjects().then(this.onObjects).catch(() => setTimeout(() => this.loadObjectTable(), RETRY_MS));
    }

    /** Whether the page can no longer understand twscope's messages. If so, the page reloads; if it is paused, only once it is
     *  live again. */
    checkState(state: State): boolean {
        const before = this.state;
        this.state = state;
        if (before && before.version !== state.version) {
            this.isOutdated = true;
            if (this.store.isLive) location.reload();
        } else if (before && !isSameObserver(before, state)) {
            this.loadObjectTable();
        }
        return this.isOutdated;
    }
}
