// The state of the page, and the listeners to its changes.
import { History } from './history';
import { Moment } from './moment';
import type { BarRow, RecentFinding, State } from './protocol';
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
    latest = Moment.nothing;
    moment = Moment.nothing;
    previous = Moment.nothing;
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
    get newest(): number { return Math.max(this.latest.t, this.bars[this.bars.length - 1]?.[1] ?? 0); }

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
        this.showMoment(this.history.momentAt(this.paused), this.paused > 0 ? this.history.momentAt(this.paused - 1) : Moment.nothing);
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
        this.latest = this.moment = this.previous = Moment.nothing;
        this.paused = null;
        this.selected = this.following = null;
    }
}
