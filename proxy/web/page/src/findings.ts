// The findings, and the explanation of one of them.
import { fetchText } from './api';
import { keyed, updateChildren } from './children';
import { setChildren, linkButton, make, number, row } from './dom';
import { clock, count } from './format';
import { open, panel } from './panels';
import { findingKey, type RecentFinding, type Severity } from './protocol';
import type { Store } from './store';

interface Item { type?: string; type_id: number; id: number }
interface Candidate { item: Item; field?: string; value?: number; expected?: number }

interface FindingRecord {
    id: string; name?: string; candidates?: { count: number; likeliest: Candidate[] }; tick?: number; delta_tick?: number; item?: Item; field?: string;
    crc_wanted?: number | null; crc_got?: number | null; value?: number; expected?: number; limit?: number; part?: number;
    offset?: number; ddnet_code?: number; detail?: string; hex?: string;
}

const CLASS: Record<Severity, string> = { error: 'bad', warning: 'warn', info: 'soft' };
const ORDER: Severity[] = ['error', 'warning', 'info'];
const MAX_ROWS = 60;

/** Returns a finding's name and its subject, without its meaning, which the list of kinds and the explanation show. */
function splitText(mark: RecentFinding): { name: string; about: string } {
    const [, name, about] = /^\w+ ([\w.]+): (.*?)(?:\. |$)/.exec(mark.text) ?? [];
    return { name: name ?? mark.text, about: about ?? '' };
}

const nameItem = (item: Candidate['item'], field?: string): string =>
    `${item.type || `type ${item.type_id}`} ${item.id}${field ? `, ${field}` : ''}`;

const candidateText = ({ item, field, value, expected }: Candidate): string =>
    nameItem(item, field) + (expected === undefined ? '' : `: ${value} instead of ${expected}`);

/** The parts of a finding that are guesses, until an explanation replaces them. */
const GUESSES = ['name', 'detail', 'item', 'field', 'candidates', 'part', 'offset', 'hex'];

const withoutGuess = (record: FindingRecord): FindingRecord =>
    Object.fromEntries(Object.entries(record).filter(([key]) => !GUESSES.includes(key))) as unknown as FindingRecord;

const BYTES_PER_ROW = 16;

/** Shows bytes as hex. Instead of secret bytes, twscope sends a text, which is shown unchanged. */
const bytesView = (hex: string, marked: number | undefined): HTMLElement =>
    (/^[0-9a-f]+$/.test(hex) ? hexView(hex, marked) : make('p', 'soft', hex));

/** Shows bytes as rows of hex, and marks the byte with index `marked`. `hex`: two digits for each byte. */
function hexView(hex: string, marked: number | undefined): HTMLElement {
    const view = make('pre', 'hex');
    const bytes = hex.match(/../g) ?? [];
    for (let begin = 0; begin < bytes.length; begin += BYTES_PER_ROW) {
        view.append(make('span', 'soft', begin.toString(16).padStart(4, '0')));
        bytes.slice(begin, begin + BYTES_PER_ROW).forEach((byte, index) => {
            view.append(' ', begin + index === marked ? make('mark', '', byte) : byte);
        });
        view.append('\n');
    }
    return view;
}

export class Findings {
    private readonly body = panel('findings', 'findings', 'D');
    private readonly details = make('section', 'finding-details');
    private readonly recent = make('tbody');
    private readonly counts = make('tbody');

    constructor(private readonly store: Store) {
        this.details.hidden = true;
        this.body.append(this.details, make('h3', '', 'latest warnings and errors'), make('table', '', this.recent),
            make('h3', '', 'all, by kind'), make('table', '', this.counts));
        store.on('state', () => this.show());
    }

    private show(): void {
        const { state, marks } = this.store;
        if (!state) return;
        const none = row(make('td', 'soft', 'none'));
        updateChildren(this.recent, marks.length === 0 ? [none] : marks.slice(-MAX_ROWS).reverse().map((mark) => this.rowOf(mark)));
        const sorted = [...state.findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) || b.count - a.count);
        updateChildren(this.counts, sorted.length === 0 ? [none.cloneNode(true)] : sorted.map((finding) => row(number(count(finding.count)),
            make('td', CLASS[finding.severity], finding.severity),
            make('td', '', make('b', '', finding.id), make('p', 'soft', `${finding.sentence} ${finding.cause}`)))));
    }

    private rowOf(mark: RecentFinding): HTMLTableRowElement {
        const { name, about } = splitText(mark);
        const go = linkButton(name, mark.text, () => this.visit(mark), CLASS[mark.severity]);
        return keyed(findingKey(mark), row(make('td', 'soft', clock(mark.time_ms)), make('td', '', go, make('p', 'soft', about))));
    }

    /** Shows the moment of the finding, if the history has it, and the finding's explanation. */
    visit(mark: RecentFinding): void {
        const index = this.store.history.indexAt(mark.time_ms + 1);
        if (index >= 0) this.store.goTo(index);
        void this.showDetails(mark);
    }

    /** Shows everything known about a finding: cause, item, checksums, bytes, and what happened before and after it. */
    private async showDetails(mark: RecentFinding): Promise<void> {
        open('findings');
        this.details.hidden = false;
        const close = linkButton('close', '', () => { this.details.hidden = true; });
        const explanation = make('pre', '', 'looking …');
        const facts = make('div');
        const { name, about } = splitText(mark);
        setChildren(this.details, [make('div', 'heading', make('h2', CLASS[mark.severity], name), close,
            make('p', 'soft', `${mark.severity} at ${clock(mark.time_ms)}${about ? `, ${about}` : ''}`)), facts, explanation]);
        this.details.scrollIntoView({ block: 'nearest' });
        const [text, records] = await Promise.all([
            mark.explained_at ? fetchText(mark.explained_at).catch((error: Error) => error.message)
                : Promise.resolve('Only the latest findings about snapshots have an explanation.'),
            this.records(mark)]);
        explanation.textContent = text;
        const explained = records.some((record) => record.id === 'snapshot.explained');
        setChildren(facts, records.map((record) => this.facts(explained && record.id === 'snapshot.crc_mismatch' ? withoutGuess(record) : record)));
    }

    private async records(mark: RecentFinding): Promise<FindingRecord[]> {
        if (mark.tick === undefined) return [];
        const filter = `finding and session == ${mark.session} and tick == ${mark.tick}`;
        const lines = await fetchText(`/api/records?wait=0&filter=${encodeURIComponent(filter)}`).catch(() => '');
        return lines.split('\n').filter(Boolean).map((line) => JSON.parse(line) as FindingRecord);
    }

    private facts(record: FindingRecord): Node {
        const known = this.store.state?.findings.find((each) => each.id === record.id);
        const { item, candidates, ddnet_code: code } = record;
        const facts: [string, unknown][] = [['what', known?.sentence], ['usually', known?.cause], ['tick', record.tick],
            ['base', record.delta_tick], ['known', record.name], ['item', item && nameItem(item, record.field)],
            [`candidates (${candidates?.count})`, candidates?.likeliest.map(candidateText).join('; ')],
            ['checksum wanted', record.crc_wanted], ['checksum got', record.crc_got], ['value', record.value],
            ['expected', record.expected], ['limit', record.limit], ['part', record.part], ['offset', record.offset],
            ['DDNet prints', code === undefined ? '' : `error ${code}`], ['detail', record.detail]];
        const list = make('dl', 'facts', ...facts.filter(([, value]) => value !== undefined && value !== null && value !== '')
            .flatMap(([name, value]) => [make('dt', '', name), make('dd', '', String(value))]));
        const box = make('div', '', list);
        if (record.hex) box.append(bytesView(record.hex, record.offset));
        return box;
    }
}
