// The selected item: all its fields, their changes, and the tile that it is on.
import { fetchJson } from './api';
import { updateChildren, makeElement, numberCell, makeRow } from './dom';
import { clientOf, shownFields, itemKey, objectName, objectIndex, positionOf, type Item } from './objects';
import { onPanelOpened, addPanel } from './panels';
import { WORLD, type Store } from './store';
import { TILE, type TileFact } from './tiles';

const REFRESH_MS = 100;

interface WorldLine { items: { type?: string; type_id: number; id: number; seen_by?: number[] }[] }

const SIGHTINGS_REFRESH_MS = 1000;

/** Which sessions see an item, in the view of all players. */
class SightingTable {
    private readonly seen = new Map<number, readonly number[]>();
    private requestedAt = -SIGHTINGS_REFRESH_MS;

    /** Requests the world, at most once a second, because the answer is large. */
    requestSightings(): void {
        if (performance.now() - this.requestedAt < SIGHTINGS_REFRESH_MS) return;
        this.requestedAt = performance.now();
        void fetchJson<WorldLine>('/api/world').then(({ items }) => {
            this.seen.clear();
            for (const { type, type_id: number, id, seen_by: sessions } of items) {
                this.seen.set(itemKey(type === undefined ? -1 - number : objectIndex(type), id), sessions ?? []);
            }
        }).catch(() => this.seen.clear());
    }

    /** Returns the sessions that see the item as a text; empty if they are unknown. */
    textFor(item: Item): string {
        const sessions = this.seen.get(itemKey(item.object, item.id)) ?? [];
        if (sessions.length === 0) return '';
        return `seen by ${sessions.length === 1 ? 'session' : 'sessions'} ${sessions.join(', ')}`;
    }
}

export class Selection {
    private readonly body = addPanel('selection', 'selection', 'I');
    private shownAt = 0;

    private readonly sightings = new SightingTable();

    constructor(private readonly store: Store) {
        const show = (): void => this.show();
        store.on('selection', show);
        store.on('moment', () => { if (!store.isLive || performance.now() - this.shownAt > REFRESH_MS) show(); });
        store.on('map', show);
        onPanelOpened('selection', show);
    }

    private show(): void {
        this.shownAt = performance.now();
        const { store } = this;
        if (this.body.hidden) return;
        if (store.selected === null) {
            return updateChildren(this.body, [makeElement('p', 'soft', 'Click a tee or an item on the map to see all that the last snapshot says about it.')]);
        }
        if (store.source === WORLD && store.isLive) this.sightings.requestSightings();
        const item = store.moment.items.get(store.selected);
        if (!item) return updateChildren(this.body, [makeElement('p', 'soft', 'Not in this snapshot.')]);
        const parts: Node[] = [this.makeHeading(item), this.makeFieldTable(item)];
        const client = clientOf(item);
        if (objectName(item) === 'character') {
            for (const more of ['ddnet_character', 'player_info', 'client_info', 'ddnet_player']) {
                const other = store.moment.get(more, client);
                if (other) parts.push(makeElement('h3', '', `${more} ${other.id}`), this.makeFieldTable(other));
            }
        }
        updateChildren(this.body, parts);
    }

    private makeHeading(item: Item): Node {
        const { store } = this;
        const client = clientOf(item);
        const name = client >= 0 ? store.moment.playerName(client) : '';
        const box = makeElement('div', 'heading', makeElement('h2', '', name || objectName(item)),
            makeElement('p', 'soft', `${objectName(item)} ${item.id}, tick ${store.moment.tick}`));
        const place = positionOf(item);
        if (place) {
            const tile = { x: Math.floor(Math.round(place.x) / TILE), y: Math.floor(Math.round(place.y) / TILE) };
            box.append(makeElement('p', '', `at ${Math.round(place.x)}, ${Math.round(place.y)} · tile ${tile.x}, ${tile.y}: ${this.tileText(tile.x, tile.y)}`));
        }
        // Which sessions see an item is known for the present only.
        const seen = store.source !== WORLD ? `seen by session ${store.source}` : store.isLive ? this.sightings.textFor(item) : '';
        if (seen) box.append(makeElement('p', 'soft', seen));
        return box;
    }

    private tileText(x: number, y: number): string {
        const facts: TileFact[] = this.store.tiles?.tilesAt(x, y) ?? [];
        if (!this.store.tiles) return 'no map';
        if (facts.length === 0) return 'air';
        return facts.map((fact) => `${fact.layer} ${fact.name || fact.index}${fact.number ? ` no. ${fact.number}` : ''}`).join(', ');
    }

    private makeFieldTable(item: Item): HTMLTableElement {
        const old = this.findPreviousItem(item);
        const before = old ? shownFields(old) : [];
        return makeElement('table', 'fields', makeElement('tbody', '', ...shownFields(item).map((field, index) => {
            const was = before[index]?.value;
            const changed = old !== undefined && was !== field.value;
            const line = makeRow(makeElement('td', 'key', field.name), numberCell(field.value, field.meaning === 'text' ? 'words' : ''),
                makeElement('td', 'soft', field.meaning === 'text' ? '' : field.meaning), makeElement('td', 'was', changed ? `was ${was ?? 'nothing'}` : ''));
            line.classList.toggle('changed', changed);
            return line;
        })));
    }

    /** Returns the same item in the previous snapshot. */
    private findPreviousItem(item: Item): Item | undefined {
        const { previous, moment } = this.store;
        if (previous === moment) return item;
        for (const old of previous.all(objectName(item))) if (old.id === item.id) return old;
        return undefined;
    }
}
