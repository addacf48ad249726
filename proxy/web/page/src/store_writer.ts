// Stores what twscope sends in the page's state.
import { goneKeys, itemsOf } from './history';
import { Moment } from './moment';
import { isExplained, isSameObserver, findingKey, type BarRow, type Frame, type State } from './protocol';
import type { Store } from './store';

const SPAN_MS = 600_000;
const MAX_BARS = 40_000;
const MAX_MARKS = 2000;

export class StoreWriter {
    private lastNumber = 0;

    /** `requestFullFrame` makes twscope send a frame with all items. */
    constructor(private readonly store: Store, private readonly requestFullFrame: () => void) {}

    addFrame(frame: Frame): void {
        const { store } = this;
        if (frame.session !== store.source) return;
        if (!frame.full && (frame.n !== this.lastNumber + 1 || store.latest.tick < 0)) return this.requestFullFrame();
        this.lastNumber = frame.n;
        const items = itemsOf(frame.items);
        const gone = goneKeys(frame.gone);
        const previous = store.latest;
        store.latest = previous.next(frame.t, frame.tick, frame.full, items, gone);
        this.adjustPausedIndex(store.history.add(store.latest, frame.full, items, gone));
        this.addBars(frame.bars);
        if (store.isLive) store.showMoment(store.latest, previous.tick < 0 || previous.tick === frame.tick ? store.latest : previous);
    }

    /** Adjusts the index of the paused frame after the history removed this many of its oldest frames. */
    private adjustPausedIndex(forgotten: number): void {
        const { store } = this;
        if (forgotten > 0 && store.paused !== null) store.paused = Math.max(store.paused - forgotten, 0);
    }

    /** Adds the bars of snapshots that could not be rebuilt. twscope sends them separately while there is no new frame. */
    addLooseBars(session: number, bars: readonly BarRow[]): void {
        if (session === this.store.source) this.addBars(bars);
    }

    private addBars(bars: readonly BarRow[]): void {
        const { store } = this;
        store.bars.push(...bars);
        const oldest = store.newest - SPAN_MS;
        if (store.bars.length > MAX_BARS || (store.bars[0]?.[1] ?? oldest) < oldest - 10_000) {
            store.bars = store.bars.slice(-MAX_BARS).filter((bar) => bar[1] >= oldest);
        }
        store.notify('bars');
    }

    setState(state: State, framesLost: number, worldServer: string | null): void {
        const { store } = this;
        store.previousState = store.state && isSameObserver(store.state, state) ? store.state : null;
        store.state = state;
        store.framesLost = framesLost;
        store.worldServer = worldServer;
        const known = new Set(store.marks.map(findingKey));
        for (const finding of state.recent) {
            if (known.has(findingKey(finding))) continue;
            const guess = store.marks.findIndex((mark) => isExplained(mark, finding));
            if (guess >= 0) store.marks[guess] = finding;
            else store.marks.push(finding);
            known.add(findingKey(finding));
        }
        for (const mark of store.marks) { // The explanation of an earlier finding may exist by now.
            mark.explained_at ??= state.recent.find((each) => each.session === mark.session && each.tick === mark.tick)?.explained_at ?? '';
            if (mark.explained_at === '') delete mark.explained_at;
        }
        store.marks = store.marks.filter((mark) => mark.time_ms >= state.now_ms - SPAN_MS).slice(-MAX_MARKS);
        store.notify('state');
    }

    /** Discards all data of the previous source. Called when another source is shown. */
    clearSource(): void {
        this.lastNumber = 0;
        this.store.clearSource();
        this.store.showMoment(Moment.nothing, Moment.nothing);
    }
}
