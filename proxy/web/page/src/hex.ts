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

/** Shows bytes as hex. Instead of secret bytes, twscope sends a text, which is shown unchanged. */
export const bytesView = (hex: string, marked: number | undefined): HTMLElement =>
    (/^[0-9a-f]+$/.test(hex) ? hexView(hex, marked) : make('p', 'soft', hex));

/** Shows bytes as rows of hex, and marks the byte with index `marked`. `hex`: two digits for each byte. */
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
