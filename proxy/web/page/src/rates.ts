/** What a counter grew by a second. */
export const rate = (now: number, then: number | undefined, seconds: number): number =>
    (then === undefined || seconds <= 0 ? 0 : Math.max(now - then, 0) / seconds);

/** The mean of what came since, from two means and what they are of. */
export const meanSince = (now: number, count: number, then: number, oldCount: number): number =>
    (count > oldCount ? Math.max(now * count - then * oldCount, 0) / (count - oldCount) : 0);
