// What the page knows, and who wants to hear of it.
import { History } from './history';
import { Moment } from './moment';
import type { BarRow, RecentFinding, State } from './protocol';
import type { Tiles } from './tiles';

/** What is looked at: a session, or all players. */
export type Source = number;
export const WORLD: Source = 0;

const MAX_MAPS = 4; // of one session, one after the other: some take megabytes

type Topic = 'moment' | 'state' | 'bars' | 'selection' | 'source' | 'map';

export class Store {
    readonly history = new History();
    bars: BarRow[] = [];
    marks: RecentFinding[] = [];
    state: State | null = null;
    /** The one before, for rates. */
    before: State | null = null;
    source: Source = -1;
    /** Of what is looked at, and since when; the youngest last. */
    private maps: { since: number; tiles: Tiles | null }[] = [];
    /** The moment that came last, and that on the canvas. */
    latest = Moment.nothing;
    moment = Moment.nothing;
    previous = Moment.nothing;
    /** Index in the history; null: live. */
    paused: number | null = null;
    /** Key of the selected item; null: none. */
    selected: number | null = null;
    following: number | null = null;
    framesLost = 0;
    /** Of several servers the one whose world is shown; null: they have no names, or none is shown. */
    worldServer: string | null = null;
    /** performance.now() when `moment` was put there. */
    arrived = 0;

    private readonly listeners = new Map<Topic, (() => void)[]>();

    on(topic: Topic, act: () => void): void {
        this.listeners.set(topic, [...this.listeners.get(topic) ?? [], act]);
    }

    tell(topic: Topic): void {
        for (const act of this.listeners.get(topic) ?? []) act();
    }

    /** When the last snapshot came, rebuilt or not. */
    get newest(): number { return Math.max(this.latest.t, this.bars[this.bars.length - 1]?.[1] ?? 0); }

    /** Of the moment on the canvas. */
    get tiles(): Tiles | null {
        return (this.maps.findLast(({ since }) => since <= this.moment.t) ?? this.maps[0])?.tiles ?? null;
    }

    /** The map from now on; null, until it is there. */
    map(tiles: Tiles | null): void {
        const last = this.maps[this.maps.length - 1];
        if (last && last.tiles === null) last.tiles = tiles;
        else this.maps = [...this.maps, { since: this.latest.t, tiles }].slice(-MAX_MAPS);
        this.tell('map');
    }

    /** Whether it was found in what is looked at. */
    has(mark: RecentFinding): boolean { return this.source === WORLD || mark.session === this.source || mark.session === 0; }

    get isLive(): boolean { return this.paused === null; }

    show(moment: Moment, previous: Moment): void {
        this.moment = moment;
        this.previous = previous;
        this.arrived = performance.now();
        this.tell('moment');
    }

    /** Goes to a frame of the history. */
    goTo(index: number): void {
        const last = this.history.length - 1;
        if (last < 0) return;
        this.paused = Math.min(Math.max(index, 0), last);
        this.show(this.history.momentAt(this.paused), this.paused > 0 ? this.history.momentAt(this.paused - 1) : Moment.nothing);
    }

    step(by: number): void {
        this.goTo((this.paused ?? this.history.length - 1) + by);
    }

    goLive(): void {
        this.paused = null;
        this.show(this.latest, this.latest);
    }

    forget(): void {
        this.history.clear();
        this.bars = [];
        this.maps = [];
        this.latest = this.moment = this.previous = Moment.nothing;
        this.paused = null;
        this.selected = this.following = null;
    }
}
