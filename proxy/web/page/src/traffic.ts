// The traffic between clients and server as charts.
import uPlot from 'uplot';
import { setChildren, makeElement } from './dom';
import { formatSize } from './format';
import { isPanelOpen, onPanelOpened, addPanel } from './panels';
import type { BytesRow, State, DirectionTraffic } from './protocol';
import { isLateUpdate, meanSince, ratePerSecond } from './rates';
import type { Store } from './store';

const MAX_POINTS = 1200; // number of points: ten minutes, two a second
const MAX_LINES = 7;
const COLORS = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--c8'];
const HEIGHT = 150;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300];

interface Series { label: string; values: (number | null)[] }

/** A chart of some lines over time. */
class Chart {
    private plot: uPlot | null = null;
    private readonly host = makeElement('div', 'chart');
    private labels = '';

    constructor(parent: HTMLElement, title: string, private readonly show: (value: number) => string, private readonly hint: string) {
        parent.append(makeElement('h3', '', title), this.host);
    }

    private clear(): void {
        this.plot?.destroy();
        this.plot = null;
        this.labels = '';
        setChildren(this.host, [makeElement('p', 'soft', this.hint)]);
    }

    draw(times: readonly number[], series: readonly Series[]): void {
        const style = getComputedStyle(this.host);
        const labels = series.map((each) => each.label).join('\n') + style.getPropertyValue('--ink');
        const width = this.host.clientWidth;
        if (width === 0) return;
        if (times.length < 2) return this.clear(); // one point has no time axis
        const data = [times, ...series.map((each) => each.values)] as uPlot.AlignedData;
        if (this.plot && this.labels === labels) {
            if (this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
            this.plot.setData(data);
            return;
        }
        this.plot?.destroy();
        setChildren(this.host, []);
        this.labels = labels;
        const soft = style.getPropertyValue('--soft');
        const axis = { stroke: soft, grid: { stroke: style.getPropertyValue('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
        this.plot = new uPlot({
            width, height: HEIGHT, legend: { live: true }, cursor: { y: false, drag: { x: false, y: false } },
            scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] } },
            axes: [{ ...axis, values: (_plot, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString('en-GB')), space: 90, incrs: STEPS_S },
                { ...axis, size: 62, values: (_plot, ticks) => ticks.map(this.show) }],
            series: [{ label: 'time' },
                ...series.map((each, index) => ({
                    label: each.label, stroke: style.getPropertyValue(COLORS[index % COLORS.length] ?? '--bar'), width: 1.6,
                    // Without a pointer on the chart, the last known value is shown.
                    value: (plot: uPlot, value: number | null, line: number, at: number | null) => {
                        const known = at === null ? [...plot.data[line] ?? []].reverse().find((each) => typeof each === 'number') : value;
                        return typeof known === 'number' ? this.show(known) : '–';
                    },
                    points: { show: false },
                }))],
        }, data, this.host);
    }
}

/** Values over time, by name. All rows have the same length. */
class SeriesTable {
    readonly times: number[] = [];
    readonly rows = new Map<string, (number | null)[]>();

    addValues(t: number, values: ReadonlyMap<string, number>): void {
        this.times.push(t);
        for (const name of values.keys()) {
            if (!this.rows.has(name)) this.rows.set(name, new Array<number | null>(this.times.length - 1).fill(null));
        }
        for (const [name, row] of this.rows) row.push(values.get(name) ?? null);
        if (this.times.length > MAX_POINTS) {
            this.times.shift();
            for (const row of this.rows.values()) row.shift();
        }
    }

    /** Ends the lines of the chart here, because there are no values for the time since the last point. */
    addGap(t: number): void {
        if (this.times.length > 0) this.addValues(t, new Map());
    }

    /** Returns the rows with the largest sums in the last minute. */
    largestSeries(most: number): Series[] {
        const weight = (row: readonly (number | null)[]): number => row.slice(-120).reduce<number>((sum, value) => sum + (value ?? 0), 0);
        return [...this.rows].sort((a, b) => weight(b[1]) - weight(a[1])).slice(0, most).map(([label, values]) => ({ label, values }));
    }
}

export class TrafficPanel {
    private readonly body = addPanel('traffic', 'traffic', 'N');
    private readonly toClients = new SeriesTable();
    private readonly toServer = new SeriesTable();
    private readonly payload = new SeriesTable();
    private readonly session = new SeriesTable();
    private readonly snapshotSizes = new SeriesTable();
    private isWatching = false;
    private lastBytes: { t: number; rows: Map<string, number> } | null = null;
    private readonly charts: { chart: Chart; draw: (chart: Chart) => void }[] = [];

    constructor(private readonly store: Store, private readonly onWatch: (on: boolean) => void) {
        const perSecond = (value: number): string => `${formatSize(value)}/s`;
        const adding = 'Collecting data …';
        this.addChart('bytes to clients, by item and message', perSecond, adding, (chart) => chart.draw(this.toClients.times, this.toClients.largestSeries(MAX_LINES)));
        this.addChart('bytes to the server, by message', perSecond, adding, (chart) => chart.draw(this.toServer.times, this.toServer.largestSeries(MAX_LINES)));
        this.addChart('payload', perSecond, adding, (chart) => chart.draw(this.payload.times, this.payload.largestSeries(2)));
        this.addChart('snapshots of this view: size (a session’s is at most 64 kB)', formatSize, 'No snapshot yet.', (chart) => chart.draw(this.snapshotSizes.times, this.snapshotSizes.largestSeries(3)));
        this.addChart('jitter, ack lag of this session', (value) => `${value.toFixed(1)} ms`, 'The view of all players has none: choose a session.',
            (chart) => chart.draw(this.session.times, this.session.largestSeries(3)));
        onPanelOpened('traffic', () => { this.setWatching(true); this.drawCharts(); });
        store.on('state', () => this.addState());
        store.on('source', () => { this.session.times.length = this.snapshotSizes.times.length = 0; this.session.rows.clear(); this.snapshotSizes.rows.clear(); });
    }

    /** Tells twscope whether to count the bytes by type, which it does only for viewers. */
    private setWatching(on: boolean): void {
        this.isWatching = on;
        if (!on) this.lastBytes = null;
        this.onWatch(on);
    }

    private addChart(title: string, show: (value: number) => string, hint: string, draw: (chart: Chart) => void): void {
        this.charts.push({ chart: new Chart(this.body, title, show, hint), draw });
    }

    addTotals(rows: readonly BytesRow[]): void {
        const now = performance.now();
        const totals = new Map<string, number>();
        for (const [dir, group, name, bits] of rows) {
            const key = `${dir} ${group === 'item' || group === 'message' ? name : `${group}: ${name}`}`;
            totals.set(key, (totals.get(key) ?? 0) + bits / 8);
        }
        const last = this.lastBytes;
        if (!last) for (const table of [this.toClients, this.toServer]) table.addGap(Date.now() / 1000);
        if (last && now - last.t < 900) return; // twscope updates its totals once a second, with some jitter
        if (last && isLateUpdate(totals, last.rows, now - last.t)) return;
        this.lastBytes = { t: now, rows: totals };
        if (!last) return;
        for (const [table, dir] of [[this.toClients, 's2c '], [this.toServer, 'c2s ']] as const) {
            const values = new Map<string, number>();
            for (const [key, total] of totals) {
                if (key.startsWith(dir)) values.set(key.slice(4), ratePerSecond(total, last.rows.get(key) ?? total, (now - last.t) / 1000));
            }
            table.addValues(Date.now() / 1000, values);
        }
    }

    private addState(): void {
        const { state, previousState: before, bars, source } = this.store;
        if (!state) return;
        if (before) this.addRates(state, before, (state.now_ms - before.now_ms) / 1000);
        const mine = bars.slice(-60).filter((bar) => bar[1] > state.now_ms - 600);
        if (mine.length > 0) {
            this.snapshotSizes.addValues(state.now_ms / 1000, new Map([['snapshot', Math.max(...mine.map((bar) => bar[6]))],
                ['delta', Math.max(...mine.map((bar) => bar[4]))]]));
        }
        const session = state.sessions.find((each) => each.number === source);
        const old = before?.sessions.find((each) => each.number === source);
        if (session && old) {
            const jitter = (now: DirectionTraffic, then: DirectionTraffic): number =>
                meanSince(now.jitter_us, now.jitter_count, then.jitter_us, then.jitter_count) / 1000;
            const lag = meanSince(session.ack_lag_ticks, session.ack_lag_count, old.ack_lag_ticks, old.ack_lag_count);
            this.session.addValues(state.now_ms / 1000, new Map([['jitter to the client', jitter(session.s2c, old.s2c)],
                ['jitter to the server', jitter(session.c2s, old.c2s)], ['ack lag', lag * 20]]));
        }
        if (isPanelOpen('traffic')) this.drawCharts();
        else if (this.isWatching) this.setWatching(false);
    }

    private addRates(state: State, before: State, seconds: number): void {
        this.payload.addValues(state.now_ms / 1000, new Map([
            ['to clients', ratePerSecond(state.relay.s2c.bytes, before.relay.s2c.bytes, seconds)],
            ['to the server', ratePerSecond(state.relay.c2s.bytes, before.relay.c2s.bytes, seconds)]]));
    }

    drawCharts(): void {
        for (const { chart, draw } of this.charts) draw(chart);
    }
}
