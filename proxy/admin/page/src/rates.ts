/** What a counter grew by a second. */
export const rate = (now: number, then: number | undefined, seconds: number): number =>
    (then === undefined || seconds <= 0 ? 0 : Math.max(now - then, 0) / seconds);
