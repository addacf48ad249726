// The state of the page, and the listeners to its changes.
import { History, itemKeysOf, itemsFromRows } from './history';
import { Moment } from './moment';
import { type BarRow, type RecentFinding, type State, isExplained, isSameObserver, findingKey, type Frame } from './protocol';
import type { Tiles } from './tiles';

/** What is shown: the number of a session, or WORLD for all players. */
export type Source = number;
export const WORLD: Source = 0;

const MAX_MAPS = 4; // limit for one source, in which map follows map; some take megabytes

type Topic = 'moment' | 'state' | 'bars' | 'selection' | 'source' | 'map';

export class Store {
    readonly history = new History();
    bars: BarRow[] = [];
    marks: RecentFinding[] = [];
    state: State | null = null;
    /** The previous state of the same observer, to compute rates. */
    previousState: State | null = null;
    source: Source = -1;
    /** The maps of the current source with the time of their first snapshot; the newest is last. */
    private maps: { since: number; tiles: Tiles | null }[] = [];
    /** The latest moment; `moment` is the one on the canvas. */
    latest = Moment.empty;
    moment = Moment.empty;
    previous = Moment.empty;
    /** Index of the paused frame in the history; null while the view is live. */
    paused: number | null = null;
    /** Key of the selected item; null if none is selected. */
    selected: number | null = null;
    following: number | null = null;
    framesLost = 0;
    /** The server whose world is shown, if there are several; null if servers have no names or no world is shown. */
    worldServer: string | null = null;
    /** Value of performance.now() when `moment` was set. */
    shownAt = 0;

    private readonly listeners = new Map<Topic, (() => void)[]>();

    on(topic: Topic, act: () => void): void {
        this.listeners.set(topic, [...this.listeners.get(topic) ?? [], act]);
    }

    notify(topic: Topic): void {
        for (const act of this.listeners.get(topic) ?? []) act();
    }

    /** Time of the last snapshot, whether it could be rebuilt or not. */
    get newestTime(): number { return Math.max(this.latest.t, this.bars[this.bars.length - 1]?.[1] ?? 0); }

    /** The map of the moment on the canvas. */
    get tiles(): Tiles | null {
        return (this.maps.findLast(({ since }) => since <= this.moment.t) ?? this.maps[0])?.tiles ?? null;
    }

    /** Sets the map for the moments from now on; null while it is being loaded. */
    setMap(tiles: Tiles | null): void {
        const last = this.maps[this.maps.length - 1];
        if (last && last.tiles === null) last.tiles = tiles;
        else this.maps = [...this.maps, { since: this.latest.t, tiles }].slice(-MAX_MAPS);
        this.notify('map');
    }

    /** Whether the finding is about the current source. */
    isAboutSource(mark: RecentFinding): boolean { return this.source === WORLD || mark.session === this.source || mark.session === 0; }

    get isLive(): boolean { return this.paused === null; }

    showMoment(moment: Moment, previous: Moment): void {
        this.moment = moment;
        this.previous = previous;
        this.shownAt = performance.now();
        this.notify('moment');
    }

    /** Pauses at a frame of the history. */
    goTo(index: number): void {
        const last = this.history.length - 1;
        if (last < 0) return;
        this.paused = Math.min(Math.max(index, 0), last);
        this.showMoment(this.history.momentAt(this.paused), this.paused > 0 ? this.history.momentAt(this.paused - 1) : Moment.empty);
    }

    step(by: number): void {
        this.goTo((this.paused ?? this.history.length - 1) + by);
    }

    goLive(): void {
        this.paused = null;
        this.showMoment(this.latest, this.latest);
    }

    clearSource(): void {
        this.history.clear();
        this.bars = [];
        this.maps = [];
        this.latest = this.moment = this.previous = Moment.empty;
        this.paused = null;
        this.selected = this.following = null;
    }
}

const KEPT_MS = 600_000;
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
        const items = itemsFromRows(frame.items);
        const gone = itemKeysOf(frame.gone);
        const previous = store.latest;
        store.latest = previous.nextMoment(frame.t, frame.tick, frame.full, items, gone);
        this.adjustPausedIndex(store.history.addFrame(store.latest, frame.full, items, gone));
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
        const oldest = store.newestTime - KEPT_MS;
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
        store.marks = store.marks.filter((mark) => mark.time_ms >= state.now_ms - KEPT_MS).slice(-MAX_MARKS);
        store.notify('state');
    }

    /** Discards all data of the previous source. Called when another source is shown. */
    clearSource(): void {
        this.lastNumber = 0;
        this.store.clearSource();
        this.store.showMoment(Moment.empty, Moment.empty);
    }
}
