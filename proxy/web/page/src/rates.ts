/** Returns a counter's growth per second. */
export const ratePerSecond = (now: number, then: number | undefined, seconds: number): number =>
    (then === undefined || seconds <= 0 ? 0 : Math.max(now - then, 0) / seconds);

/** Returns the mean of the values added since `then`. `now` and `then`: means; `count` and `oldCount`: their numbers of values. */
export const meanSince = (now: number, count: number, then: number, oldCount: number): number =>
    (count > oldCount ? Math.max(now * count - then * oldCount, 0) / (count - oldCount) : 0);

const MAX_UPDATE_MS = 2500; // counters that stay the same for this long do not grow

/** Whether counters stayed the same only because their update is late. Drawn as a rate, that would be a drop and a peak. */
export const isLateUpdate = (now: ReadonlyMap<string, number>, then: ReadonlyMap<string, number>, passedMs: number): boolean =>
    passedMs < MAX_UPDATE_MS && [...now].every(([key, value]) => then.get(key) === value);

const RECENT_MS = 60_000;
const MAX_COUNTERS = 5000;

/** Remembers for a minute that a counter has grown while the page was open. */
export class GrowthTracker {
    private readonly counters = new Map<string, { value: number; grew: number }>();

    hasGrown(name: string, value: number, now: number): boolean {
        const old = this.counters.get(name);
        const grew = old && value > old.value ? now : old?.value === value ? old.grew : -Infinity;
        this.counters.delete(name); // the counter moves to the end, because the first counter is removed
        this.counters.set(name, { value, grew });
        if (this.counters.size > MAX_COUNTERS) this.counters.delete(this.counters.keys().next().value ?? '');
        return now - grew < RECENT_MS;
    }
}
