/** Returns a counter's growth per second. */
export const rate = (now: number, then: number | undefined, seconds: number): number =>
    (then === undefined || seconds <= 0 ? 0 : Math.max(now - then, 0) / seconds);

/** Returns the mean of the values added since `then`. `now` and `then`: means; `count` and `oldCount`: their numbers of values. */
export const meanSince = (now: number, count: number, then: number, oldCount: number): number =>
    (count > oldCount ? Math.max(now * count - then * oldCount, 0) / (count - oldCount) : 0);

const RECENT_MS = 60_000;
const MOST_COUNTERS = 5000;

/** Remembers for a minute that a counter has grown while the page was open. */
export class Growth {
    private readonly seen = new Map<string, { value: number; grew: number }>();

    hasGrown(name: string, value: number, now: number): boolean {
        const old = this.seen.get(name);
        const grew = old && value > old.value ? now : old?.value === value ? old.grew : -Infinity;
        this.seen.delete(name); // so that it is the youngest again
        this.seen.set(name, { value, grew });
        if (this.seen.size > MOST_COUNTERS) this.seen.delete(this.seen.keys().next().value ?? '');
        return now - grew < RECENT_MS;
    }
}
