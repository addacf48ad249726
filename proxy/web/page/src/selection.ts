// The selected item: all its fields, their changes, and the tile that it is on.
import { fetchJson } from './api';
import { updateChildren } from './children';
import { make, number, row } from './dom';
import { clientOf, fieldsOf, keyOf, nameOf, objectNamed, positionOf, type Item } from './objects';
import { onOpened, panel } from './panels';
import { WORLD, type Store } from './store';
import { TILE, type TileFact } from './tiles';

const EVERY_MS = 100;

interface WorldLine { items: { type?: string; type_id: number; id: number; seen_by?: number[] }[] }

const SIGHTINGS_EVERY_MS = 1000;

/** Which sessions see an item, in the view of all players. */
class SightingTable {
    private readonly seen = new Map<number, readonly number[]>();
    private asked = -SIGHTINGS_EVERY_MS;

    /** Requests the world, at most once a second, because the answer is large. */
    request(): void {
        if (performance.now() - this.asked < SIGHTINGS_EVERY_MS) return;
        this.asked = performance.now();
        void fetchJson<WorldLine>('/api/world').then(({ items }) => {
            this.seen.clear();
            for (const { type, type_id: number, id, seen_by: sessions } of items) {
                this.seen.set(keyOf(type === undefined ? -1 - number : objectNamed(type), id), sessions ?? []);
            }
        }).catch(() => this.seen.clear());
    }

    /** Returns the sessions that see the item as a text; empty if they are unknown. */
    textFor(item: Item): string {
        const sessions = this.seen.get(keyOf(item.object, item.id)) ?? [];
        if (sessions.length === 0) return '';
        return `seen by ${sessions.length === 1 ? 'session' : 'sessions'} ${sessions.join(', ')}`;
    }
}

export class Selection {
    private readonly body = panel('selection', 'selection', 'I');
    private shownAt = 0;

    private readonly sightings = new SightingTable();

    constructor(private readonly store: Store) {
        const show = (): void => this.show();
        store.on('selection', show);
        store.on('moment', () => { if (!store.isLive || performance.now() - this.shownAt > EVERY_MS) show(); });
        store.on('map', show);
        onOpened('selection', show);
    }

    private show(): void {
        this.shownAt = performance.now();
        const { store } = this;
        if (this.body.hidden) return;
        if (store.selected === null) {
            return updateChildren(this.body, [make('p', 'soft', 'Click a tee or an item on the map to see all that the last snapshot says about it.')]);
        }
        if (store.source === WORLD && store.isLive) this.sightings.request();
        const item = store.moment.items.get(store.selected);
        if (!item) return updateChildren(this.body, [make('p', 'soft', 'Not in this snapshot.')]);
        const parts: Node[] = [this.heading(item), this.fields(item)];
        const client = clientOf(item);
        if (nameOf(item) === 'character') {
            for (const more of ['ddnet_character', 'player_info', 'client_info', 'ddnet_player']) {
                const other = store.moment.get(more, client);
                if (other) parts.push(make('h3', '', `${more} ${other.id}`), this.fields(other));
            }
        }
        updateChildren(this.body, parts);
    }

    private heading(item: Item): Node {
        const { store } = this;
        const client = clientOf(item);
        const name = client >= 0 ? store.moment.playerName(client) : '';
        const box = make('div', 'heading', make('h2', '', name || nameOf(item)),
            make('p', 'soft', `${nameOf(item)} ${item.id}, tick ${store.moment.tick}`));
        const place = positionOf(item);
        if (place) {
            const tile = { x: Math.floor(Math.round(place.x) / TILE), y: Math.floor(Math.round(place.y) / TILE) };
            box.append(make('p', '', `at ${Math.round(place.x)}, ${Math.round(place.y)} · tile ${tile.x}, ${tile.y}: ${this.tileText(tile.x, tile.y)}`));
        }
        // Which sessions see an item is known for the present only.
        const seen = store.source !== WORLD ? `seen by session ${store.source}` : store.isLive ? this.sightings.textFor(item) : '';
        if (seen) box.append(make('p', 'soft', seen));
        return box;
    }

    private tileText(x: number, y: number): string {
        const facts: TileFact[] = this.store.tiles?.tilesAt(x, y) ?? [];
        if (!this.store.tiles) return 'no map';
        if (facts.length === 0) return 'air';
        return facts.map((fact) => `${fact.layer} ${fact.name || fact.index}${fact.number ? ` no. ${fact.number}` : ''}`).join(', ');
    }

    private fields(item: Item): HTMLTableElement {
        const old = this.before(item);
        const before = old ? fieldsOf(old) : [];
        return make('table', 'fields', make('tbody', '', ...fieldsOf(item).map((field, index) => {
            const was = before[index]?.value;
            const changed = old !== undefined && was !== field.value;
            const line = row(make('td', 'key', field.name), number(field.value, field.meaning === 'text' ? 'words' : ''),
                make('td', 'soft', field.meaning === 'text' ? '' : field.meaning), make('td', 'was', changed ? `was ${was ?? 'nothing'}` : ''));
            line.classList.toggle('changed', changed);
            return line;
        })));
    }

    /** Returns the same item in the previous snapshot. */
    private before(item: Item): Item | undefined {
        const { previous, moment } = this.store;
        if (previous === moment) return item;
        for (const old of previous.all(nameOf(item))) if (old.id === item.id) return old;
        return undefined;
    }
}
