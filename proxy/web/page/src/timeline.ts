// The timeline: each snapshot is a bar, findings are marks above it; dragging goes back in time.
import { elementById, visibleText } from './dom';
import { formatTime, formatPreciseTime, formatSize, formatDuration } from './format';
import { findingName, type BarRow, type RecentFinding } from './protocol';
import { WORLD, type Store } from './store';

const MARKS_HEIGHT = 18; // height of the row of marks
const CLOCK_HEIGHT = 14; // height of the row of clock times
const DRAW_INTERVAL_MS = 60; // a faster pace is not visible, and would take time from the game on the canvas
const CLOCK_MARGIN = 28; // pixels: half the width of a clock time; closer to the edge it would be cut off
const GROUP_WIDTH = 32; // pixels: findings that are closer than this become one mark with their number
const MAX_NAMED_KINDS = 4;
const MAX_LINE_GAP_MS = 1000; // a line that joins points farther apart would show data where there is none
const RESULT_COLORS = ['--bar', '--bad', '--bad'];

interface MarkGroup { x: number; marks: RecentFinding[] }

const isError = ({ severity }: RecentFinding): boolean => severity === 'error';

/** Describes a mark: the text of its only finding, or the number of findings of each kind. */
export function markText({ marks }: Pick<MarkGroup, 'marks'>): string {
    const [only] = marks;
    if (only && marks.length === 1) return only.text;
    const kinds = new Map<string, number>();
    for (const mark of marks) kinds.set(findingName(mark), (kinds.get(findingName(mark)) ?? 0) + 1);
    const told = [...kinds].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} × ${name}`);
    return `${marks.length} findings: ${told.slice(0, MAX_NAMED_KINDS).join(', ')}${told.length > MAX_NAMED_KINDS ? ', …' : ''}`;
}

export class Timeline {
    private readonly canvas = elementById<HTMLCanvasElement>('timeline');
    private readonly context = this.canvas.getContext('2d');
    private needsDrawing = true;
    /** Whether the pointer moves on the timeline, which is then drawn at once. */
    private isPointerMoving = false;
    private drawnAt = 0;
    private pointerX: number | null = null;
    private isDragging = false;
    /** Time of the right edge while the timeline stands still; null while it runs. */
    private stoppedEndMs: number | null = null;

    constructor(private readonly store: Store, private readonly onFinding: (finding: RecentFinding) => void) {
        for (const topic of ['bars', 'state', 'moment'] as const) store.on(topic, () => { this.needsDrawing = true; });
        new ResizeObserver(() => { this.needsDrawing = true; }).observe(this.canvas);
        elementById('span').addEventListener('change', () => { this.needsDrawing = true; });
        this.listenToPointer();
        const turn = (now: number): void => {
            if (this.needsDrawing && (now - this.drawnAt >= DRAW_INTERVAL_MS || this.isPointerMoving)) {
                this.isPointerMoving = false;
                this.drawnAt = now;
                this.draw();
            }
            requestAnimationFrame(turn);
        };
        requestAnimationFrame(turn);
    }

    redraw(): void { this.needsDrawing = true; }

    /** The visible time span, read once for each drawing. */
    private spanMs = 60_000;
    private width = 1;

    private measureCanvas(): void {
        this.spanMs = Number(elementById<HTMLSelectElement>('span').value) * 1000;
        this.width = Math.max(this.canvas.clientWidth, 1);
    }

    /** Time of the right edge: the newest snapshot, or the time at which the timeline was stopped. */
    private get endMs(): number {
        if (this.store.isLive) this.stoppedEndMs = null;
        else this.stoppedEndMs ??= this.store.newestTime;
        if (this.stoppedEndMs !== null) { // keeps the current moment in view
            const from = this.stoppedEndMs - this.spanMs;
            if (this.store.moment.t < from) this.stoppedEndMs = this.store.moment.t + this.spanMs * 0.9;
            if (this.store.moment.t > this.stoppedEndMs) this.stoppedEndMs = this.store.moment.t;
        }
        return this.stoppedEndMs ?? this.store.newestTime;
    }

    private timeAt(x: number): number { return this.endMs - this.spanMs * (1 - x / this.width); }

    private xOf(t: number, end: number): number { return (1 - (end - t) / this.spanMs) * this.width; }

    private listenToPointer(): void {
        const { canvas, store } = this;
        const seek = (event: PointerEvent): void => store.goTo(store.history.indexAt(this.timeAt(event.offsetX)));
        canvas.addEventListener('pointerdown', (event) => {
            const bin = event.offsetY < MARKS_HEIGHT + 4 ? this.groupAt(event.offsetX) : undefined;
            const mark = bin && (bin.marks.find(isError) ?? bin.marks[0]);
            if (mark) return this.onFinding(mark);
            this.isDragging = true;
            canvas.setPointerCapture(event.pointerId);
            seek(event);
        });
        canvas.addEventListener('pointermove', (event) => {
            this.pointerX = event.offsetX;
            this.needsDrawing = this.isPointerMoving = true;
            if (this.isDragging) seek(event);
        });
        canvas.addEventListener('pointerup', () => { this.isDragging = false; });
        canvas.addEventListener('pointercancel', () => { this.isDragging = false; });
        canvas.addEventListener('pointerleave', () => { this.pointerX = null; this.needsDrawing = true; });
    }

    /** Groups findings that are close together into one mark. The groups are fixed in time, so that marks do not jump while
     *  time passes. */
    private groupMarks(end: number): MarkGroup[] {
        const bins = new Map<number, MarkGroup>();
        const binMs = this.spanMs * GROUP_WIDTH / this.width;
        for (const mark of this.store.marks) {
            const x = this.xOf(mark.time_ms, end);
            if (x < -GROUP_WIDTH || !this.store.isAboutSource(mark)) continue;
            const bin = bins.get(Math.floor(mark.time_ms / binMs));
            if (bin) bin.marks.push(mark);
            else bins.set(Math.floor(mark.time_ms / binMs), { x: 0, marks: [mark] });
        }
        // A number is in the middle of its group, so that it does not overlap the next one.
        for (const [index, bin] of bins) bin.x = this.xOf(bin.marks.length === 1 ? bin.marks[0]?.time_ms ?? 0 : (index + 0.5) * binMs, end);
        return [...bins.values()];
    }

    private groupAt(x: number): MarkGroup | undefined {
        const gap = (bin: MarkGroup): number => Math.abs(bin.x - x);
        return this.groupMarks(this.endMs).filter((bin) => gap(bin) < GROUP_WIDTH / 2).sort((a, b) => gap(a) - gap(b))[0];
    }

    private draw(): void {
        const { canvas, context, store } = this;
        this.needsDrawing = false;
        if (!context || canvas.clientWidth === 0) return;
        this.measureCanvas();
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
        this.drawCurrentMoment(context, end, color);
        this.drawPointerText(context, color);
        canvas.setAttribute('aria-valuetext', store.isLive ? 'live' : formatPreciseTime(store.moment.t));
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
            context.moveTo(x, MARKS_HEIGHT);
            context.lineTo(x, height - CLOCK_HEIGHT);
            context.stroke();
            if (x > CLOCK_MARGIN && x < this.canvas.clientWidth - CLOCK_MARGIN) context.fillText(formatTime(t), x, height - 3);
        }
    }

    /** Returns one bar for each column of pixels: the bar with the worst result, or the largest of several such bars. */
    private thinOutBars(bars: readonly BarRow[], end: number): BarRow[] {
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
        const height = this.canvas.clientHeight - MARKS_HEIGHT - CLOCK_HEIGHT;
        const from = end - this.spanMs;
        let first = bars.length;
        while (first > 0 && (bars[first - 1]?.[1] ?? 0) >= from) --first;
        const visible = this.thinOutBars(bars.slice(first), end);
        const largest = Math.max(...visible.map((bar) => bar[4]), 200);
        const width = Math.max(this.width / Math.max(this.spanMs / 20, 1), 1);
        for (const [, t, , deltaTick, bytes, parts, , fate] of visible) {
            const x = this.xOf(t, end);
            const tall = Math.max(height * bytes / largest, 2);
            context.fillStyle = color(fate === 0 && deltaTick < 0 ? '--full' : RESULT_COLORS[fate] ?? '--bar');
            context.fillRect(x - width, MARKS_HEIGHT + height - tall, Math.max(width - 0.3, 0.8), tall);
            for (let part = 1; part < (this.store.source === WORLD ? 0 : parts); ++part) { // a line between two parts
                context.clearRect(x - width, MARKS_HEIGHT + height - tall * part / parts, width, 1);
            }
        }
        this.drawBaseDistance(context, visible, end, color('--distance'), height);
        this.drawLegend(context, formatSize(largest), color);
    }

    private drawLegend(context: CanvasRenderingContext2D, most: string, color: (name: string) => string): void {
        const isWorld = this.store.source === WORLD;
        const words = [[isWorld ? 'world' : 'delta', '--bar'], ...(isWorld ? [] : [['full', '--full'], ['not rebuilt', '--bad']]),
            [isWorld ? 'ticks between' : 'ticks to its base', '--distance']];
        const head = `up to ${most}`;
        const widths = [head, ...words.map(([word = '']) => word)].map((text) => context.measureText(text).width + 24);
        context.globalAlpha = 0.8;
        context.fillStyle = color('--card');
        context.fillRect(0, MARKS_HEIGHT, widths.reduce((sum, width) => sum + width, -6), 16);
        context.globalAlpha = 1;
        context.textAlign = 'left';
        context.fillStyle = color('--soft');
        context.fillText(head, 6, MARKS_HEIGHT + 12);
        let x = widths[0] ?? 0;
        words.forEach(([word = '', name = ''], index) => {
            context.fillStyle = color(name);
            context.fillRect(x, name === '--distance' ? MARKS_HEIGHT + 7 : MARKS_HEIGHT + 4, 8, name === '--distance' ? 2 : 8);
            context.fillStyle = color('--soft');
            context.fillText(word, x + 12, MARKS_HEIGHT + 12);
            x += widths[index + 1] ?? 0;
        });
    }

    /** Draws how many ticks old the base of each delta is. A rising line means that the client acknowledges nothing. */
    private drawBaseDistance(context: CanvasRenderingContext2D, bars: readonly BarRow[], end: number, color: string, height: number): void {
        context.strokeStyle = color;
        context.lineWidth = 1.25;
        context.beginPath();
        const gap = Math.max(MAX_LINE_GAP_MS, 3 * this.spanMs / this.width); // bars are at least a pixel apart
        let before = -Infinity;
        for (const [, t, tick, deltaTick] of bars) {
            const y = MARKS_HEIGHT + height - height * Math.min(deltaTick < 0 ? 0 : tick - deltaTick, 150) / 150;
            if (t - before < gap) context.lineTo(this.xOf(t, end), y);
            else context.moveTo(this.xOf(t, end), y);
            before = t;
        }
        context.stroke();
    }

    private drawMarks(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        context.font = '600 11px system-ui, sans-serif';
        context.textAlign = 'center';
        for (const { x, marks } of this.groupMarks(end)) {
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

    private drawCurrentMoment(context: CanvasRenderingContext2D, end: number, color: (name: string) => string): void {
        const { store } = this;
        const x = store.isLive ? this.canvas.clientWidth - 1 : this.xOf(store.moment.t, end);
        context.fillStyle = color(store.isLive ? '--good' : '--ink');
        context.fillRect(x - 1, 0, 2, this.canvas.clientHeight - CLOCK_HEIGHT);
        if (store.moment.tick < 0) {
            elementById('moment').textContent = '';
            return;
        }
        const behind = (store.latest.t - store.moment.t) / 1000;
        elementById('moment').textContent = `tick ${store.moment.tick} · ${formatPreciseTime(store.moment.t)}` +
            (store.isLive ? '' : ` · ${behind < 1 ? `${behind.toFixed(2)} s` : formatDuration(behind)} ago`);
    }

    private barText([, t, tick, deltaTick, bytes, parts, whole, fate]: BarRow): string {
        if (this.store.source === WORLD) return `tick ${tick}, ${formatTime(t)}: ${formatSize(whole)}, of ${parts} ${parts === 1 ? 'session' : 'sessions'}`;
        return `tick ${tick}, ${formatTime(t)}: ${bytes} B in ${parts} ${parts === 1 ? 'part' : 'parts'}, ` +
            `${deltaTick < 0 ? 'full' : `delta from ${tick - deltaTick} ticks back`}` +
            `${whole ? `, snapshot of ${formatSize(whole)}` : ''}, ${['verified', 'not rebuilt', 'wrong checksum'][fate] ?? ''}`;
    }

    private drawPointerText(context: CanvasRenderingContext2D, color: (name: string) => string): void {
        if (this.pointerX === null) return;
        const t = this.timeAt(this.pointerX);
        const bar = this.store.bars.findLast((each) => each[1] <= t);
        const bin = this.groupAt(this.pointerX);
        if (!bar && !bin) return;
        const text = bin ? visibleText(markText(bin)) : bar ? this.barText(bar) : '';
        context.font = '12px system-ui, sans-serif';
        const width = context.measureText(text).width + 16;
        const x = Math.min(Math.max(this.pointerX - width / 2, 0), Math.max(this.canvas.clientWidth - width, 0));
        context.fillStyle = color('--ink');
        context.beginPath();
        context.roundRect(x, MARKS_HEIGHT + 2, width, 22, 5);
        context.fill();
        context.fillStyle = color('--page');
        context.textAlign = 'left';
        context.fillText(text, x + 8, MARKS_HEIGHT + 17);
    }
}
