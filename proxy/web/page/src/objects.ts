// The table of objects from /api/objects, which gives names and meanings to the ints of an item.
import { fetchJson } from './api';
import type { Field, ObjectSpec } from './protocol';

export interface Item { object: number; id: number; data: readonly number[] }

let specs: ObjectSpec[] = [];
const indexByName = new Map<string, number>();
const offsets = new Map<string, number>();

export async function loadObjects(): Promise<void> {
    specs = (await fetchJson<{ objects: ObjectSpec[] }>('/api/objects')).objects;
    indexByName.clear();
    offsets.clear();
    specs.forEach((spec, index) => {
        if (indexByName.has(spec.name)) return; // the later one is 0.7's; twscope sends items of 0.7 as objects of 0.6
        indexByName.set(spec.name, index);
        for (const field of spec.fields) offsets.set(`${spec.name}.${field.name}`, field.offset);
    });
}

export const allObjects = (): readonly ObjectSpec[] => specs;
export const specOf = (item: Item): ObjectSpec | undefined => specs[item.object];
export const objectName = (item: Item): string => specOf(item)?.name ?? `unknown type ${-1 - item.object}`;
export const objectIndex = (name: string): number => indexByName.get(name) ?? -1;

/** Returns a number that identifies an item within a moment. */
export const itemKey = (object: number, id: number): number => (object + 0x10000) * 0x10000 + id;

/** Returns object and id of a key. */
export const keyParts = (key: number): [object: number, id: number] => [Math.floor(key / 0x10000) - 0x10000, key % 0x10000];

/** Returns the int of a field, named by "object.field"; 0 if the item is too short. */
export function intField(item: Item, path: string): number {
    const offset = offsets.get(path);
    return offset === undefined ? 0 : item.data[offset] ?? 0;
}

/** Returns a text that servers pack into ints, four bytes each. */
export function textField(item: Item, path: string, ints: number): string {
    const offset = offsets.get(path) ?? 0;
    const bytes: number[] = [];
    for (const value of item.data.slice(offset, offset + ints)) {
        for (const shift of [24, 16, 8, 0]) bytes.push(((value >>> shift) & 0xff) ^ 0x80);
    }
    bytes[bytes.length - 1] = 0;
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(new Uint8Array(bytes.slice(0, end < 0 ? bytes.length : end)));
}

/** Returns the item's position in world units; null if it has none. */
export function positionOf(item: Item): { x: number; y: number } | null {
    const position = specOf(item)?.position;
    if (!position) return null;
    const x = item.data[position.x];
    const y = item.data[position.y];
    return x === undefined || y === undefined ? null : { x: x / position.per_unit, y: y / position.per_unit };
}

/** Returns the client to whom the item belongs; -1 if it belongs to none. */
export function clientOf(item: Item): number {
    const client = specOf(item)?.client;
    if (client === undefined) return -1;
    return client === 'id' ? item.id : item.data[client] ?? -1;
}

function valueNames(field: Field, value: number, before: number | undefined): string {
    if (field.names_when && !(before !== undefined && before >= 0 && before < 32 && (field.names_when >>> before) & 1)) return '';
    if (field.flags) {
        const set = field.flags.filter(([mask]) => mask !== 0 && (value & mask) === mask).map(([, name]) => name);
        return set.join(' | ');
    }
    return field.names?.find(([known]) => known === value)?.[1] ?? '';
}

export interface ShownField { name: string; value: string; meaning: string }

export function shownFields(item: Item): ShownField[] {
    const spec = specOf(item);
    if (!spec) return item.data.map((value, index) => ({ name: `[${index}]`, value: `${value}`, meaning: '' }));
    return spec.fields.filter((field) => field.offset < item.data.length).map((field) => {
        const value = item.data[field.offset] ?? 0;
        if (field.kind === 'text') return { name: field.name, value: textField(item, `${spec.name}.${field.name}`, field.count), meaning: 'text' };
        if (field.kind === 'integers') {
            return { name: field.name, value: item.data.slice(field.offset, field.offset + field.count).join(' '), meaning: '' };
        }
        if (field.kind === 'boolean') return { name: field.name, value: `${value}`, meaning: value ? 'yes' : 'no' };
        return { name: field.name, value: `${value}`, meaning: valueNames(field, value, item.data[field.offset - 1]) };
    });
}
