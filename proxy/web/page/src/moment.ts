// The items of one snapshot. A Moment never changes. The next Moment shares all items that stay the same.
import { intField, itemKey, objectIndex, textField, type Item } from './objects';

export class Moment {
    constructor(readonly t: number, readonly tick: number, readonly items: ReadonlyMap<number, Item>) {}

    static readonly empty = new Moment(0, -1, new Map());

    nextMoment(t: number, tick: number, full: boolean, changed: Iterable<Item>, gone: Iterable<number>): Moment {
        const items = full ? new Map<number, Item>() : new Map(this.items);
        for (const key of gone) items.delete(key);
        for (const item of changed) items.set(itemKey(item.object, item.id), item);
        return new Moment(t, tick, items);
    }

    get(name: string, id: number): Item | undefined { return this.items.get(itemKey(objectIndex(name), id)); }

    /** Iterates over all items of the object with this name. */
    * all(name: string): Generator<Item> {
        const object = objectIndex(name);
        for (const item of this.items.values()) if (item.object === object) yield item;
    }

    private readonly names = new Map<number, string>();

    playerName(client: number): string {
        let name = this.names.get(client);
        if (name === undefined) {
            const info = this.get('client_info', client);
            name = info ? textField(info, 'client_info.name', 4) : '';
            this.names.set(client, name);
        }
        return name;
    }

    private flags: number | undefined;

    get gameFlags(): number {
        if (this.flags !== undefined) return this.flags;
        const [game] = this.all('game_info');
        return this.flags = game ? intField(game, 'game_info.game_flags') : 0;
    }

    /** Client id of the player for whom the snapshot was made; -1 if it is unknown. */
    get localClient(): number {
        for (const info of this.all('player_info')) {
            if (intField(info, 'player_info.local')) return intField(info, 'player_info.client_id');
        }
        return -1;
    }
}
