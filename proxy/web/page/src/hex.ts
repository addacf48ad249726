// Shows bytes as hex and marks where decoding failed.
import { make } from './dom';

interface Item { type?: string; type_id: number; id: number }
export interface Candidate { item: Item; field?: string; value?: number; expected?: number }

export interface FindingRecord {
    id: string; name?: string; candidates?: { count: number; likeliest: Candidate[] }; tick?: number; delta_tick?: number; item?: Item; field?: string;
    crc_wanted?: number | null; crc_got?: number | null; value?: number; expected?: number; limit?: number; part?: number;
    offset?: number; ddnet_code?: number; detail?: string; hex?: string;
}

const A_ROW = 16;

/** Shows bytes; secret bytes come as another text, which is shown as it is. */
export const bytesView = (hex: string, marked: number | undefined): HTMLElement =>
    (/^[0-9a-f]+$/.test(hex) ? hexView(hex, marked) : make('p', 'soft', hex));

/** `hex`: two digits for each byte. Marks the bytes from index `marked` to the end of their row. */
function hexView(hex: string, marked: number | undefined): HTMLElement {
    const view = make('pre', 'hex');
    const bytes = hex.match(/../g) ?? [];
    for (let begin = 0; begin < bytes.length; begin += A_ROW) {
        view.append(make('span', 'soft', begin.toString(16).padStart(4, '0')));
        bytes.slice(begin, begin + A_ROW).forEach((byte, index) => {
            view.append(' ', begin + index === marked ? make('mark', '', byte) : byte);
        });
        view.append('\n');
    }
    return view;
}
