// The findings, and the explanation of one of them.
import { fetchText } from './api';
import { withKey, updateChildren, setChildren, makeLinkButton, makeElement, numberCell, makeRow } from './dom';
import { formatTime, formatCount } from './format';
import { openPanel, addPanel } from './panels';
import { findingKey, type RecentFinding, type Severity, type State } from './protocol';
import type { Store } from './store';

export interface FindingItem { type?: string; type_id: number; id: number }
interface Candidate { item: FindingItem; field?: string; value?: number; expected?: number }

interface FindingRecord {
    id: string; name?: string; candidates?: { count: number; likeliest: Candidate[] }; tick?: number; delta_tick?: number; item?: FindingItem; field?: string;
    crc_wanted?: number | null; crc_got?: number | null; value?: number; expected?: number; limit?: number; part?: number;
    offset?: number; ddnet_code?: number; detail?: string; hex?: string;
}

const SEVERITY_CLASS: Record<Severity, string> = { error: 'bad', warning: 'warn', info: 'soft' };
const SEVERITY_ORDER: Severity[] = ['error', 'warning', 'info'];
const MAX_ROWS = 60;

/** Returns a finding's name and its subject, without its meaning, which the list of kinds and the explanation show. */
function splitFindingText(mark: RecentFinding, state: State | null): { name: string; about: string } {
    const [, name, about = ''] = /^\w+ ([\w.]+): (.*?)(?:\. |$)/.exec(mark.text) ?? [];
    const player = state?.sessions.find(({ number }) => number === mark.session)?.name;
    return { name: name ?? mark.text, about: player ? about.replace(/^session \d+/, (session) => `${session} (${player})`) : about };
}

export const itemText = (item: FindingItem, field?: string): string =>
    `${item.type || `type ${item.type_id}`} ${item.id}${field ? `, ${field}` : ''}`;

const candidateText = ({ item, field, value, expected }: Candidate): string =>
    itemText(item, field) + (expected === undefined ? '' : `: ${value} instead of ${expected}`);

/** The parts of a finding that are guesses, until an explanation replaces them. */
const GUESSED_KEYS = ['name', 'detail', 'item', 'field', 'candidates', 'part', 'offset', 'hex'];

const removeGuesses = (record: FindingRecord): FindingRecord =>
    Object.fromEntries(Object.entries(record).filter(([key]) => !GUESSED_KEYS.includes(key))) as unknown as FindingRecord;

const BYTES_PER_ROW = 16;

/** Shows bytes as hex. Instead of secret bytes, twscope sends a text, which is shown unchanged. */
const makeBytesView = (hex: string, marked: number | undefined): HTMLElement =>
    (/^[0-9a-f]+$/.test(hex) ? makeHexView(hex, marked) : makeElement('p', 'soft', hex));

/** Shows bytes as rows of hex, and marks the byte with index `marked`. `hex`: two digits for each byte. */
function makeHexView(hex: string, marked: number | undefined): HTMLElement {
    const view = makeElement('pre', 'hex');
    const bytes = hex.match(/../g) ?? [];
    for (let begin = 0; begin < bytes.length; begin += BYTES_PER_ROW) {
        view.append(makeElement('span', 'soft', begin.toString(16).padStart(4, '0')));
        bytes.slice(begin, begin + BYTES_PER_ROW).forEach((byte, index) => {
            view.append(' ', begin + index === marked ? makeElement('mark', '', byte) : byte);
        });
        view.append('\n');
    }
    return view;
}

export class Findings {
    private readonly body = addPanel('findings', 'findings', 'D');
    private readonly details = makeElement('section', 'finding-details');
    private readonly recent = makeElement('tbody');
    private readonly counts = makeElement('tbody');
    private shownMark: RecentFinding | null = null;
    /** Time of the moment shown with that finding; null: live. */
    private shownMoment: number | null = null;

    constructor(private readonly store: Store) {
        this.details.hidden = true;
        this.body.append(this.details, makeElement('h3', '', 'all, by kind'), makeElement('table', '', this.counts),
            makeElement('h3', '', 'latest warnings and errors'), makeElement('table', '', this.recent));
        store.on('state', () => this.show());
    }

    private show(): void {
        const { state, marks } = this.store;
        if (!state) return;
        const none = makeRow(makeElement('td', 'soft', 'none'));
        updateChildren(this.recent, marks.length === 0 ? [none] : marks.slice(-MAX_ROWS).reverse().map((mark) => this.makeFindingRow(mark)));
        const sorted = [...state.findings].sort((a, b) => SEVERITY_ORDER.indexOf(a.severity) - SEVERITY_ORDER.indexOf(b.severity) || b.count - a.count);
        updateChildren(this.counts, sorted.length === 0 ? [none.cloneNode(true)] : sorted.map((finding) => withKey(finding.id, makeRow(numberCell(formatCount(finding.count)),
            makeElement('td', SEVERITY_CLASS[finding.severity], finding.severity),
            makeElement('td', '', this.makeKindName(finding.id), makeElement('p', 'soft', `${finding.sentence} Usually: ${finding.cause}`))))));
    }

    /** The name of a kind of finding; a click shows the latest one of it, if the page still has it. */
    private makeKindName(id: string): HTMLElement {
        const latest = (): RecentFinding | undefined => this.store.marks.findLast((mark) => splitFindingText(mark, null).name === id);
        return latest() ? makeLinkButton(id, 'show the latest', () => { const mark = latest(); if (mark) this.showFinding(mark); }) : makeElement('b', '', id);
    }

    private makeFindingRow(mark: RecentFinding): HTMLTableRowElement {
        const { name, about } = splitFindingText(mark, this.store.state);
        const go = makeLinkButton(name, mark.text, () => this.showFinding(mark), SEVERITY_CLASS[mark.severity]);
        return withKey(findingKey(mark), makeRow(makeElement('td', 'soft', formatTime(mark.time_ms)), makeElement('td', '', go, makeElement('p', 'soft', about))));
    }

    /** The finding whose details and moment are shown; null if there is none. */
    get shown(): RecentFinding | null {
        const { isLive, moment } = this.store;
        return !this.details.hidden && (isLive ? null : moment.t) === this.shownMoment ? this.shownMark : null;
    }

    /** Shows the moment of the finding, if the history has it, and the finding's explanation. */
    showFinding(mark: RecentFinding): void {
        this.shownMark = mark;
        const index = this.store.history.indexAt(mark.time_ms + 1);
        if (index >= 0) this.store.goTo(index);
        this.shownMoment = this.store.isLive ? null : this.store.moment.t;
        void this.showDetails(mark);
    }

    /** Shows everything known about a finding: cause, item, checksums, bytes, and what happened before and after it. */
    private async showDetails(mark: RecentFinding): Promise<void> {
        openPanel('findings');
        this.details.hidden = false;
        const close = makeLinkButton('close', '', () => { this.details.hidden = true; });
        const explanation = makeElement('pre', '', 'looking …');
        const facts = makeElement('div');
        const { name, about } = splitFindingText(mark, this.store.state);
        setChildren(this.details, [makeElement('div', 'heading', makeElement('h2', SEVERITY_CLASS[mark.severity], name), close,
            makeElement('p', 'soft', `${mark.severity} at ${formatTime(mark.time_ms)}${about ? `, ${about}` : ''}`)), facts, explanation]);
        this.details.scrollIntoView({ block: 'nearest' });
        const [text, records] = await Promise.all([
            mark.explained_at ? fetchText(mark.explained_at).catch((error: Error) => error.message)
                : Promise.resolve('No explanation is kept here: only of findings about snapshots, at most two a second, and the latest 16.\n'
                    + `${mark.tick === undefined ? '' : `If twscope records: twscope explain RECORDING --session ${mark.session} --tick ${mark.tick}`}`),
            this.fetchRecords(mark)]);
        explanation.textContent = text;
        const explained = records.some((record) => record.id === 'snapshot.explained');
        setChildren(facts, records.map((record) => this.makeFacts(explained && record.id === 'snapshot.crc_mismatch' ? removeGuesses(record) : record)));
    }

    private async fetchRecords(mark: RecentFinding): Promise<FindingRecord[]> {
        if (mark.tick === undefined) return [];
        const filter = `finding and session == ${mark.session} and tick == ${mark.tick}`;
        const lines = await fetchText(`/api/records?wait=0&filter=${encodeURIComponent(filter)}`).catch(() => '');
        return lines.split('\n').filter(Boolean).map((line) => JSON.parse(line) as FindingRecord);
    }

    private makeFacts(record: FindingRecord): Node {
        const known = this.store.state?.findings.find((each) => each.id === record.id);
        const { item, candidates, ddnet_code: code } = record;
        const facts: [string, unknown][] = [['what', known?.sentence], ['usually', known?.cause], ['tick', record.tick],
            ['base', record.delta_tick], ['known', record.name], ['item', item && itemText(item, record.field)],
            [`candidates (${candidates?.count})`, candidates?.likeliest.map(candidateText).join('; ')],
            ['checksum wanted', record.crc_wanted], ['checksum got', record.crc_got], ['value', record.value],
            ['expected', record.expected], ['limit', record.limit], ['part', record.part], ['offset', record.offset],
            ['DDNet prints', code === undefined ? '' : `error ${code}`], ['detail', record.detail]];
        const list = makeElement('dl', 'facts', ...facts.filter(([, value]) => value !== undefined && value !== null && value !== '')
            .flatMap(([name, value]) => [makeElement('dt', '', name), makeElement('dd', '', String(value))]));
        const box = makeElement('div', '', list);
        if (record.hex) box.append(makeBytesView(record.hex, record.offset));
        return box;
    }
}
