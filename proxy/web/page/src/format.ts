export const formatCount = (value: number): string => value.toLocaleString('en');

export function formatSize(bytes: number): string {
    const units = ['B', 'kB', 'MB', 'GB'];
    let unit = 0;
    while (bytes >= 1000 && unit < units.length - 1) {
        bytes /= 1000;
        ++unit;
    }
    return `${unit > 0 && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

const TIME_UNITS: readonly (readonly [number, string])[] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];

/** Formats a duration, such as "2 h 5 min". */
export function formatDuration(seconds: number): string {
    const first = Math.max(TIME_UNITS.findIndex(([unit]) => seconds >= unit), 0);
    const parts: string[] = [];
    let rest = seconds;
    for (const [unit, name] of TIME_UNITS.slice(seconds < 1 ? TIME_UNITS.length - 1 : first).slice(0, 2)) {
        parts.push(`${Math.floor(rest / unit)} ${name}`);
        rest %= unit;
    }
    return parts.join(' ');
}

/** Formats a race time, or the difference of two: 83450 as "1:23.450", and from an hour on without milliseconds. */
export function formatRaceTime(time: number): string {
    const ms = Math.abs(time);
    const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
    const seconds = ((ms % 60_000) / 1000).toFixed(3).padStart(6, '0');
    return `${time < 0 ? '−' : ''}${hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${seconds.slice(0, 2)}` : `${minutes}:${seconds}`}`;
}

export const formatTime = (ms: number): string => new Date(ms).toLocaleTimeString('en-GB');

export function formatPreciseTime(ms: number): string {
    return `${formatTime(ms)}.${String(Math.floor(ms % 1000)).padStart(3, '0')}`;
}

export const formatPercent = (share: number): string => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
