// The messages from twscope. docs/api.md describes them.

export interface DirectionTraffic { datagrams: number; bytes: number; recovered: number; jitter_us: number; jitter_count: number }

export interface SessionState {
    number: number; client: string; server_name?: string; protocol: string; map: string; map_id: string | null; name: string; place: string;
    score?: number | null;
    /** True if the score is a time in milliseconds, or -1 for none. */
    score_is_ms?: boolean;
    closed: boolean; opened_ms: number; c2s: DirectionTraffic; s2c: DirectionTraffic; snapshots: number; verified: number; missed: number;
    frozen_ms: number; ack_lag_ticks: number; ack_lag_count: number; largest_snapshot: number; findings: number;
}

export interface RelayTraffic { datagrams: number; bytes: number; dropped: number; refused: number; copies_lost: number }

/** One of several servers. A server from a stream of records also has the address of its own page (empty if unknown), its
 *  number of records, and the time of the latest record. */
export interface NamedServerState {
    name: string; server: string; listen: string[]; silent: boolean; players: number; findings: number;
    page?: string; records?: number; last_ms?: number;
    relay: { sessions: number; c2s: RelayTraffic; s2c: RelayTraffic };
}

export interface FindingCount { id: string; severity: Severity; sentence: string; cause: string; count: number }
export type Severity = 'info' | 'warning' | 'error';
export interface RecentFinding {
    time_ms: number; session: number; severity: Severity; text: string; tick?: number; explained_at?: string;
}

/** Returns a text that identifies a finding. */
export const findingKey = (mark: RecentFinding): string => `${mark.time_ms} ${mark.session} ${mark.text}`;

/** Returns the finding's name, such as "snapshot.crc_mismatch". */
export const findingName = (mark: RecentFinding): string => /^\w+ ([\w.]+): /.exec(mark.text)?.[1] ?? mark.text;

const severityAndName = (mark: RecentFinding): string => mark.text.slice(0, mark.text.indexOf(': '));

/** Whether `now` is the explained form of the finding `before`. */
export const isExplained = (before: RecentFinding, now: RecentFinding): boolean => now.tick !== undefined && before.tick === now.tick
    && before.session === now.session && before.time_ms === now.time_ms && severityAndName(before) === severityAndName(now);

/** The state of the recordings that are started on the page. */
export interface PageRecording {
    captures: boolean; capture_since_ms: number | null; demos_since_ms: number | null; lost: number; stopped: string;
}

export interface State {
    version: string; now_ms: number; started_ms: number; listen: string[]; server: string; server_silent: boolean;
    server_silent_since_ms?: number; server_unanswered?: number; server_refused?: number;
    impairment: string; impaired_by: { time_ms: number; from: string } | null; observer: number; viewers: number; viewers_lost: number;
    inspecting: boolean; servers: NamedServerState[];
    /** The stream from which all data comes; null if this twscope itself forwards or taps the traffic. */
    stream: { name: string; trouble: string; records: number; left_out: number } | null;
    relay: { sessions: number; c2s: RelayTraffic; s2c: RelayTraffic };
    recording: { output: string; failed: boolean; error: string; lost: number; flight: boolean; bus: Record<string, number> | null; page: PageRecording | null };
    snapshots: Record<string, number>;
    sessions_seen_by_inspection: number; sessions: SessionState[]; findings: FindingCount[]; recent: RecentFinding[];
    items: Record<string, number>;
}

/** Whether both states come from the same observer. The counters of one observer never decrease. */
export const isSameObserver = (a: State, b: State): boolean => a.observer === b.observer && a.started_ms === b.started_ms;

/** [session, t, tick, delta_tick, bytes, parts, size, fate]; fate: 0 verified, 1 not rebuilt, 2 another checksum */
export type BarRow = [number, number, number, number, number, number, number, number];

export interface Frame {
    k: 'frame'; session: number; n: number; full: boolean; t: number; tick: number;
    items: number[][]; gone: number[][]; bars: BarRow[];
}

export type LogLine = Record<string, unknown> & { t: string; type: string; session: number };
export type BytesRow = [dir: 'c2s' | 's2c', group: string, name: string, bits: number, count: number];

export type Message = Frame
    | { k: 'bars'; session: number; bars: BarRow[] }
    | { k: 'state'; frames_lost: number; world_server: string | null; state: State }
    | { k: 'log'; lost: number; lines: LogLine[] }
    | { k: 'bytes'; rows: BytesRow[] }
    | { k: 'error'; about: string; message: string; offset: number };

export interface Field {
    name: string; kind: 'integer' | 'boolean' | 'tick' | 'named' | 'text' | 'integers'; offset: number; count: number;
    names?: [number, string][]; flags?: [number, string][]; names_when?: number;
}

export interface ObjectSpec {
    name: string; event: boolean; fields: Field[]; position?: { x: number; y: number; per_unit: number }; client?: number | 'id';
}
