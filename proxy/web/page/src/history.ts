// The last ten minutes of frames, packed in ints: the changes from frame to frame, and a full frame at intervals.
import { Moment } from './moment';
import { itemKey, keyParts, type Item } from './objects';

const HISTORY_MS = 600_000;
const MAX_BYTES = 96 << 20;
const KEYFRAME_INTERVAL = 100;

interface PackedFrame { t: number; tick: number; full: boolean; items: Int32Array; gone: Float64Array }

const bytesOf = (entry: PackedFrame): number => entry.items.byteLength + entry.gone.byteLength + 96;

/** Packs items as ints: object, id, number of ints, ints, next object … */
function packItems(items: Iterable<Item>): Int32Array {
    const ints: number[] = [];
    for (const item of items) ints.push(item.object, item.id, item.data.length, ...item.data);
    return Int32Array.from(ints);
}

function* unpackItems(ints: Int32Array): Generator<Item> {
    for (let at = 0; at + 2 < ints.length;) {
        const length = ints[at + 2] ?? 0;
        yield { object: ints[at] ?? 0, id: ints[at + 1] ?? 0, data: [...ints.subarray(at + 3, at + 3 + length)] };
        at += 3 + length;
    }
}

export class History {
    private entries: PackedFrame[] = [];
    private bytes = 0;
    private framesSinceKeyframe = 0;

    get length(): number { return this.entries.length; }

    get memory(): number { return this.bytes; }

    get oldestTime(): number { return this.entries[0]?.t ?? 0; }

    clear(): void {
        this.entries = [];
        this.bytes = 0;
    }

    /** Adds a frame and returns how many of the oldest frames were removed. A full frame replaces the last frame if both have
     *  the same tick, because the page may request the current frame again. */
    addFrame(moment: Moment, full: boolean, changed: readonly Item[], gone: readonly number[]): number {
        if (full && this.entries[this.entries.length - 1]?.tick === moment.tick) this.subtractBytes(this.entries.pop());
        const key = full || this.entries.length === 0 || ++this.framesSinceKeyframe >= KEYFRAME_INTERVAL;
        if (key) this.framesSinceKeyframe = 0;
        const entry = { t: moment.t, tick: moment.tick, full: key, items: packItems(key ? moment.items.values() : changed),
            gone: Float64Array.from(key ? [] : gone) };
        this.entries.push(entry);
        this.bytes += bytesOf(entry);
        return this.removeOldFrames(moment.t);
    }

    private subtractBytes(entry: PackedFrame | undefined): void {
        if (entry) this.bytes -= bytesOf(entry);
    }

    /** Removes the oldest frames up to the next full frame, and returns their number. */
    private removeOldFrames(now: number): number {
        const first = this.entries[0];
        if (!first || (now - first.t <= HISTORY_MS && this.bytes <= MAX_BYTES)) return 0;
        const old = this.entries.splice(0, Math.max(this.entries.findIndex((entry, index) => index > 0 && entry.full), 0));
        for (const entry of old) this.subtractBytes(entry);
        return old.length;
    }

    /** Returns the index of the last frame at or before this time; -1 if there is none. */
    indexAt(t: number): number {
        let low = 0;
        let high = this.entries.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if ((this.entries[middle]?.t ?? 0) <= t) low = middle + 1;
            else high = middle;
        }
        return low - 1;
    }

    /** Returns the index of the frame of this tick, or of the last frame before it; -1 if the history does not include the
     *  tick. */
    indexOfTick(tick: number): number {
        const last = this.entries[this.entries.length - 1];
        return last && tick <= last.tick ? this.entries.findLastIndex((entry) => entry.tick <= tick) : -1;
    }

    /** Returns a frame in the format of twscope's messages. */
    frameAt(index: number): object {
        const entry = this.entries[index];
        if (!entry) return {};
        return { k: 'frame', t: entry.t, tick: entry.tick, full: entry.full,
            items: [...unpackItems(entry.items)].map((item) => [item.object, item.id, ...item.data]), gone: [...entry.gone].map(keyParts) };
    }

    timeAt(index: number): number | undefined { return this.entries[index]?.t; }

    momentAt(index: number): Moment {
        let from = Math.min(index, this.entries.length - 1);
        while (from > 0 && !this.entries[from]?.full) --from;
        let moment = Moment.empty;
        for (let i = Math.max(from, 0); i <= index && i < this.entries.length; ++i) {
            const entry = this.entries[i];
            if (entry) moment = moment.nextMoment(entry.t, entry.tick, entry.full, unpackItems(entry.items), entry.gone);
        }
        return moment;
    }
}

export const itemKeysOf = (gone: readonly number[][]): number[] => gone.map(([object, id]) => itemKey(object ?? 0, id ?? 0));
export const itemsFromRows = (rows: readonly number[][]): Item[] =>
    rows.map(([object, id, ...data]) => ({ object: object ?? 0, id: id ?? 0, data }));
