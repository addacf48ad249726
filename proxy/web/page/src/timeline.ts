// The timeline: each snapshot is a bar, findings are marks above it; dragging goes back in time.
import { at, shown } from './dom';
import { clock, preciseClock, size, span } from './format';
import { findingName, type BarRow, type RecentFinding } from './protocol';
import { WORLD, type Store } from './store';

const TOP = 18; // height of the row of marks
const BOTTOM = 14; // height of the row of clock times
const LIVE_EVERY_MS = 60; // a faster pace is not visible, and would take time from the game on the canvas
const EDGE = 28; // pixels: half the width of a clock time; closer to the edge it would be cut off
const BIN = 22; // pixels: findings that are closer than this become one mark with their number
const MOST_KINDS = 4;
const GAP_MS = 1000; // a line that joins points farther apart would show data where there is none
const FATE_COLORS = ['--bar', '--bad', '--bad'];

interface Bin { x: number; marks: RecentFinding[] }

const isError = ({ severity }: RecentFinding): boolean => severity === 'error';

/** Describes a mark: the text of its only finding, or the number of findings of each kind. */
export function wordsOf({ marks }: Pick<Bin, 'marks'>): string {
    const [only] = marks;
    if (only && marks.length === 1) return only.text;
    const kinds = new Map<string, number>();
    for (const mark of marks) kinds.set(findingName(mark), (kinds.get(findingName(mark)) ?? 0) + 1);
    const told = [...kinds].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} × ${name}`);
    return `${marks.length} findings: ${told.slice(0, MOST_KINDS).join(', ')}${told.length > MOST_KINDS ? ', …' : ''}`;
}

export class Timeline {
    private readonly canvas = at<HTMLCanvasElement>('timeline');
    private readonly context = this.canvas.getContext('2d');
    private dirty = true;
    /** Whether the pointer moves on the timeline, which is then drawn at once. */
    private pointed = false;
    private drawnAt = 0;
    private hover: number | null = null;
    private dragging = false;
    /** Time of the right edge while the timeline stands still; null while it runs. */
    private end: number | null = null;

    constructor(private readonly store: Store, private readonly onFinding: (finding: RecentFinding) => void) {
        for (const topic of ['bars', 'state', 'moment'] as const) store.on(topic, () => { this.dirty = true; });
        new ResizeObserver(() => { this.dirty = true; }).observe(this.canvas);
        at('span').addEventListener('change', () => { this.dirty = true; });
        this.listen();
        const turn = (now: number): void => {
            if (this.dirty && (now - this.drawnAt >= LIVE_EVERY_MS || this.pointed)) {
                this.pointed = false;
                this.drawnAt = now;
                this.draw();
            }
            requestAnimationFrame(turn);
        };
        requestAnimationFrame(turn);
    }

    redraw(): void { this.dirty = true; }

    /** The visible time span, read once for each drawing. */
    private spanMs = 60_000;
    private width = 1;

    private measure(): void {
        this.spanMs = Number(at<HTMLSelectElement>('span').value) * 1000;
        this.width = Math.max(this.canvas.clientWidth, 1);
    }

    /** Time of the right edge: the newest snapshot, or the time at which the timeline was stopped. */
    private get endMs(): number {
        if (this.store.isLive) this.end = null;
        else this.end ??= this.store.newest;
        if (this.end !== null) { // keeps the current moment in view
            const from = this.end - this.spanMs;
            if (this.store.moment.t < from) this.end = this.store.moment.t + this.spanMs * 0.9;
            if (this.store.moment.t > this.end) this.end = this.store.moment.t;
        }
        return this.end ?? this.store.newest;
    }

    private timeAt(x: number): number { return this.endMs - this.spanMs * (1 - x / this.width); }

    private xOf(t: number, end: number): number { return (1 - (end - t) / this.spanMs) * this.width; }

    private listen(): void {
        const { canvas, store } = this;
        const seek = (event: PointerEvent): void => store.goTo(store.history.indexAt(this.timeAt(event.offsetX)));
        canvas.addEventListener('pointerdown', (event) => {
            const bin = event.offsetY < TOP + 4 ? this.binAt(event.offsetX) : undefined;
            const mark = bin && (bin.marks.find(isError) ?? bin.marks[0]);
            if (mark) return this.onFinding(mark);
            this.dragging = true;
            canvas.setPointerCapture(event.pointerId);
            seek(event);
        });
        canvas.addEventListener('pointermove', (event) => {
            this.hover = event.offsetX;
            this.dirty = this.pointed = true;
            if (this.dragging) seek(event);
        });
        canvas.addEventListener('pointerup', () => { this.dragging = false; });
        canvas.addEventListener('pointercancel', () => { this.dragging = false; });
        canvas.addEventListener('pointerleave', () => { this.hover = null; this.dirty = true; });
    }

    /** Groups findings that are close together into one mark. The groups are fixed in time, so that marks do not jump while
     *  time passes. */
    private bins(end: number): Bin[] {
        const bins = new Map<number, Bin>();
        const binMs = this.spanMs * BIN / this.width;
        for (const mark of this.store.marks) {
            const x = this.xOf(mark.time_ms, end);
            if (x < -BIN || !this.store.isAboutSource(mark)) continue;
            const bin = bins.get(Math.floor(mark.time_ms / binMs));
            if (bin) bin.marks.push(mark);
            else bins.set(Math.floor(mark.time_ms / binMs), { x: 0, marks: [mark] });
        }
        for (const bin of bins.values()) bin.x = bin.marks.reduce((sum, mark) => sum + this.xOf(mark.time_ms, end), 0) / bin.marks.length;
        return [...bins.values()];
    }

    private binAt(x: number): Bin | undefined {
        const gap = (bin: Bin): number => Math.abs(bin.x - x);
        return this.bins(this.endMs).filter((bin) => gap(bin) < BIN / 2).sort((a, b) => gap(a) - gap(b))[0];
    }

    private draw(): void {
        const { canvas, context, store } = this;
        this.dirty = false;
        if (!context || canvas.clientWidth === 0) return;
        this.measure();
        const ratio = Math.min(devicePixelRatio || 1, 2);
        canvas.width = Math.round(canvas.clientWidth * ratio);
        canvas.height = Math.round(canvas.clientHeight * ratio);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        const style = getComputedStyle(canvas);
        const colors = new Map<string, string>();
        const color = (name: string): string => {
            let value = colors.get(name);
            if (value === undefined) colors.set(name, value = style.getPropertyValue(name).trim());
            return value;
        };
        const end = this.endMs;
        this.drawClock(context, end, color);
        this.drawBars(context, end, color);
        this.drawMarks(context, end, color);
        this.drawHead(context, end, color);
        this.drawHover(context, color);
        canvas.setAttribute('aria-valuetext', store.isLive ? 'live' : preciseClock(store.moment.t));
    }

    private drawClock(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        if (end === 0) return; // no snapshot has arrived yet
        const step = this.spanMs <= 15_000 ? 5000 : this.spanMs <= 60_000 ? 10_000 : this.spanMs <= 180_000 ? 30_000 : 120_000;
        context.font = '11px system-ui, sans-serif';
        context.fillStyle = color('--soft');
        context.strokeStyle = color('--line');
        context.textAlign = 'center';
        const height = this.canvas.clientHeight;
        for (let t = Math.ceil((end - this.spanMs) / step) * step; t < end; t += step) {
            const x = Math.round(this.xOf(t, end)) + 0.5;
            context.beginPath();
            context.moveTo(x, TOP);
            context.lineTo(x, height - BOTTOM);
            context.stroke();
            if (x > EDGE && x < this.canvas.clientWidth - EDGE) context.fillText(clock(t), x, height - 3);
        }
    }

    /** Returns one bar for each column of pixels: the bar with the worst result, or the largest of several such bars. */
    private thinned(bars: readonly BarRow[], end: number): BarRow[] {
        const columns = new Map<number, BarRow>();
        for (const bar of bars) {
            const column = Math.round(this.xOf(bar[1], end));
            const other = columns.get(column);
            if (!other || bar[7] > other[7] || (bar[7] === other[7] && bar[4] > other[4])) columns.set(column, bar);
        }
        return [...columns.values()];
    }

    /** Draws bars as wide as the usual time between two snapshots, so that a missing snapshot is visible as a gap. */
    private drawBars(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        const { bars } = this.store;
        if (bars.length === 0) return;
        const height = this.canvas.clientHeight - TOP - BOTTOM;
        const from = end - this.spanMs;
        let first = bars.length;
        while (first > 0 && (bars[first - 1]?.[1] ?? 0) >= from) --first;
        const visible = this.thinned(bars.slice(first), end);
        const largest = Math.max(...visible.map((bar) => bar[4]), 200);
        const width = Math.max(this.width / Math.max(this.spanMs / 20, 1), 1);
        for (const [, t, , deltaTick, bytes, parts, , fate] of visible) {
            const x = this.xOf(t, end);
            const tall = Math.max(height * bytes / largest, 2);
            context.fillStyle = color(fate === 0 && deltaTick < 0 ? '--full' : FATE_COLORS[fate] ?? '--bar');
            context.fillRect(x - width, TOP + height - tall, Math.max(width - 0.3, 0.8), tall);
            for (let part = 1; part < (this.store.source === WORLD ? 0 : parts); ++part) { // a line between two parts
                context.clearRect(x - width, TOP + height - tall * part / parts, width, 1);
            }
        }
        this.drawDistance(context, visible, end, color('--distance'), height);
        this.drawLegend(context, size(largest), color);
    }

    private drawLegend(context: CanvasRenderingContext2D, most: string, color: (name: string) => string): void {
        const isWorld = this.store.source === WORLD;
        const words = [[isWorld ? 'world' : 'delta', '--bar'], ...(isWorld ? [] : [['full', '--full'], ['not rebuilt', '--bad']]),
            [isWorld ? 'ticks between' : 'ticks to its base', '--distance']];
        const head = `up to ${most}`;
        const widths = [head, ...words.map(([word = '']) => word)].map((text) => context.measureText(text).width + 24);
        context.globalAlpha = 0.8;
        context.fillStyle = color('--card');
        context.fillRect(0, TOP, widths.reduce((sum, width) => sum + width, -6), 16);
        context.globalAlpha = 1;
        context.textAlign = 'left';
        context.fillStyle = color('--soft');
        context.fillText(head, 6, TOP + 12);
        let x = widths[0] ?? 0;
        words.forEach(([word = '', name = ''], index) => {
            context.fillStyle = color(name);
            context.fillRect(x, name === '--distance' ? TOP + 7 : TOP + 4, 8, name === '--distance' ? 2 : 8);
            context.fillStyle = color('--soft');
            context.fillText(word, x + 12, TOP + 12);
            x += widths[index + 1] ?? 0;
        });
    }

    /** Draws how many ticks old the base of each delta is. A rising line means that the client acknowledges nothing. */
    private drawDistance(context: CanvasRenderingContext2D, bars: readonly BarRow[], end: number, color: string, height: number): void {
        context.strokeStyle = color;
        context.lineWidth = 1.25;
        context.beginPath();
        const gap = Math.max(GAP_MS, 3 * this.spanMs / this.width); // bars are at least a pixel apart
        let before = -Infinity;
        for (const [, t, tick, deltaTick] of bars) {
            const y = TOP + height - height * Math.min(deltaTick < 0 ? 0 : tick - deltaTick, 150) / 150;
            if (t - before < gap) context.lineTo(this.xOf(t, end), y);
            else context.moveTo(this.xOf(t, end), y);
            before = t;
        }
        context.stroke();
    }

    private drawMarks(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        context.font = '600 11px system-ui, sans-serif';
        context.textAlign = 'center';
        for (const { x, marks } of this.bins(end)) {
            context.fillStyle = color(marks.some(isError) ? '--bad' : '--warn');
            context.beginPath();
            if (marks.length === 1) {
                context.moveTo(x - 6, 3);
                context.lineTo(x + 6, 3);
                context.lineTo(x, 15);
                context.fill();
                continue;
            }
            const half = Math.max(context.measureText(`${marks.length}`).width / 2 + 4, 8);
            context.roundRect(x - half, 2, half * 2, 14, 4);
            context.fill();
            context.fillStyle = color('--card');
            context.fillText(`${marks.length}`, x, 13);
        }
    }

    private drawHead(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        const { store } = this;
        const x = store.isLive ? this.canvas.clientWidth - 1 : this.xOf(store.moment.t, end);
        context.fillStyle = color(store.isLive ? '--good' : '--ink');
        context.fillRect(x - 1, 0, 2, this.canvas.clientHeight - BOTTOM);
        if (store.moment.tick < 0) {
            at('moment').textContent = '';
            return;
        }
        const behind = (store.latest.t - store.moment.t) / 1000;
        at('moment').textContent = `tick ${store.moment.tick} · ${preciseClock(store.moment.t)}` +
            (store.isLive ? '' : ` · ${behind < 1 ? `${behind.toFixed(2)} s` : span(behind)} ago`);
    }

    private words([, t, tick, deltaTick, bytes, parts, whole, fate]: BarRow): string {
        if (this.store.source === WORLD) return `tick ${tick}, ${clock(t)}: ${size(whole)}, of ${parts} ${parts === 1 ? 'session' : 'sessions'}`;
        return `tick ${tick}, ${clock(t)}: ${bytes} B in ${parts} ${parts === 1 ? 'part' : 'parts'}, ` +
            `${deltaTick < 0 ? 'full' : `delta from ${tick - deltaTick} ticks back`}` +
            `${whole ? `, snapshot of ${size(whole)}` : ''}, ${['verified', 'not rebuilt', 'wrong checksum'][fate] ?? ''}`;
    }

    private drawHover(context: CanvasRenderingContext2D, color: (name: string) => string): void {
        if (this.hover === null) return;
        const t = this.timeAt(this.hover);
        const bar = this.store.bars.findLast((each) => each[1] <= t);
        const bin = this.binAt(this.hover);
        if (!bar && !bin) return;
        const text = bin ? shown(wordsOf(bin)) : bar ? this.words(bar) : '';
        context.font = '12px system-ui, sans-serif';
        const width = context.measureText(text).width + 16;
        const x = Math.min(Math.max(this.hover - width / 2, 0), Math.max(this.canvas.clientWidth - width, 0));
        context.fillStyle = color('--ink');
        context.beginPath();
        context.roundRect(x, TOP + 2, width, 22, 5);
        context.fill();
        context.fillStyle = color('--page');
        context.textAlign = 'left';
        context.fillText(text, x + 8, TOP + 17);
    }
}
