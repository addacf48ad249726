// Draws the game on the canvas, at the screen's frame rate.
import { Camera } from './camera';
import { elementById, setChildren, makeElement } from './dom';
import { drawnPosition, drawItems } from './draw/items';
import { drawNamePlate, drawSelectionRing, drawTee, type Place, type NamePlate } from './draw/tees';
import { listenToGestures } from './gestures';
import type { Moment } from './moment';
import { itemKey, objectName, objectIndex, positionOf, type Item } from './objects';
import { WORLD, type Store } from './store';
import { AIR, TILE } from './tiles';

const SELECTION_RADIUS = 30; // world units, but at least some pixels on the screen
const LONGEST_STEP_MS = 40; // the usual time between two snapshots; a longer step would only delay the picture
/** Half the size of the area around a player that servers send, in 0.6 and in DDNet. */
const CLIP_HALF_SIZE = { vanilla: { x: 1000, y: 800 }, ddnet: { x: 1200, y: 800 } };
const PLAYER_MARGIN = 300; // world units of space around the players
const TELEPORT_DISTANCE = 400; // world units; a tee that moved farther in one step was teleported
const TOOLS_WIDTH = 52; // pixels that the buttons cover at the left edge of the canvas
const APPROACH_SHARE = 0.12; // share of the distance to the wanted view that is covered in each drawn frame

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

export class View {
    readonly camera = new Camera();
    private readonly canvas = elementById<HTMLCanvasElement>('world');
    private readonly context = this.canvas.getContext('2d', { alpha: false });
    private ratio = 1;
    private isCameraPlaced = false;
    /** Where each client's tee was drawn last, in world units. */
    readonly drawn = new Map<number, Place>();
    private lastViewPoint: Place | null = null;
    /** Whether the camera keeps all players in sight. */
    private keepsAll = false;
    frames = 0;

    constructor(private readonly store: Store) {
        new ResizeObserver(() => this.resize()).observe(this.canvas);
        listenToGestures(this.canvas, this.camera, {
            tap: (x, y) => this.selectAt(x, y),
            doubleTap: (x, y) => { this.selectAt(x, y); this.toggleFollowing(); },
            moved: () => this.stopFollowing(),
            zoomed: () => { this.keepsAll = false; },
        });
        store.on('source', () => { this.isCameraPlaced = this.keepsAll = false; this.lastViewPoint = null; this.showLegend(); });
        store.on('map', () => this.showLegend());
        store.on('selection', () => this.showFollowing());
        this.resize();
        const turn = (): void => {
            this.draw();
            requestAnimationFrame(turn);
        };
        requestAnimationFrame(turn);
    }

    private resize(): void {
        this.ratio = Math.min(devicePixelRatio || 1, 2);
        this.camera.width = this.canvas.clientWidth;
        this.camera.height = this.canvas.clientHeight;
        this.canvas.width = Math.max(Math.round(this.camera.width * this.ratio), 1);
        this.canvas.height = Math.max(Math.round(this.camera.height * this.ratio), 1);
    }

    showWholeMap(): void {
        const { tiles } = this.store;
        this.stopFollowing();
        if (!tiles) return;
        this.camera.showArea(0, 0, tiles.width * TILE, tiles.height * TILE);
        this.camera.zoomBy(1 - TOOLS_WIDTH / this.camera.width);
        this.keepInsideMap();
    }

    zoomBy(factor: number): void {
        this.keepsAll = false;
        this.camera.zoomBy(factor);
    }

    moveViewBy(dx: number, dy: number): void {
        this.stopFollowing();
        this.camera.moveBy(dx, dy);
    }

    /** Moves the camera towards a view of all players, by this share of the distance. */
    private approachAll(share: number): void {
        const places = [...this.drawn.values()];
        if (places.length === 0) return;
        const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
        const { camera } = this;
        const { x, y, scale } = camera;
        camera.showArea(Math.min(...xs) - PLAYER_MARGIN, Math.min(...ys) - PLAYER_MARGIN, Math.max(...xs) + PLAYER_MARGIN, Math.max(...ys) + PLAYER_MARGIN);
        camera.scale = Math.min(camera.scale, 1);
        this.keepInsideMap();
        camera.x = x + (camera.x - x) * share;
        camera.y = y + (camera.y - y) * share;
        camera.scale = scale + (camera.scale - scale) * share;
    }

    private keepInsideMap(): void {
        const { tiles } = this.store;
        if (tiles) this.camera.keepInside(tiles.width * TILE, tiles.height * TILE, TOOLS_WIDTH);
    }

    /** Follows the selected player, or the session's own player. In the view of all players, keeps all in sight. */
    toggleFollowing(): void {
        const { store } = this;
        const isSelected = store.selected !== null && store.moment.items.has(store.selected);
        const [first] = this.drawn.keys();
        const client = this.drawn.has(store.moment.localClient) ? store.moment.localClient : first;
        if (this.keepsAll || (store.following !== null && store.following === store.selected)) return this.stopFollowing();
        if (isSelected) {
            store.following = store.selected;
        } else if (store.source === WORLD) {
            this.keepsAll = true;
        } else if (client !== undefined) {
            store.following = store.selected = itemKey(objectIndex('character'), client);
        }
        store.notify('selection');
    }

    private stopFollowing(): void {
        if (this.store.following === null && !this.keepsAll) return;
        this.keepsAll = false;
        this.store.following = null;
        this.store.notify('selection');
    }

    private showFollowing(): void {
        elementById('follow').setAttribute('aria-pressed', String(this.keepsAll || this.store.following !== null));
    }

    /** Shows what the colours and lines on the canvas mean. */
    private showLegend(): void {
        const { tiles, source } = this.store;
        const entry = (className: string, text: string, color?: string): HTMLElement => {
            const sign = makeElement('i', className);
            if (color !== undefined) sign.style.background = color;
            return makeElement('li', '', sign, text);
        };
        setChildren(elementById('key-entries'), [
            ...(tiles?.legend ?? []).map(({ color, label }) => entry('tile', label, color)),
            ...(source === WORLD ? [] : [entry('clip', 'what the client saw, roughly')]),
            entry('frozen', 'frozen'), entry('ring', 'selected'),
        ]);
    }

    select(key: number | null): void {
        this.store.selected = key;
        if (this.store.following !== null) this.store.following = key;
        this.store.notify('selection');
    }

    private selectAt(x: number, y: number): void {
        const world = this.camera.toWorld(x, y);
        const reach = Math.max(SELECTION_RADIUS, 14 / this.camera.scale);
        let best: { key: number; distance: number } | null = null;
        for (const [key, item] of this.store.moment.items) {
            const place = this.placeOf(item);
            if (!place) continue;
            // Among items close together, a tee is preferred.
            const distance = Math.hypot(place.x - world.x, place.y - world.y) + (objectName(item) === 'character' ? 0 : reach / 3);
            if (distance < reach && (!best || distance < best.distance)) best = { key, distance };
        }
        this.select(best?.key ?? null);
    }

    private placeOf(item: Item): Place | null {
        return objectName(item) === 'character' ? this.drawn.get(item.id) ?? positionOf(item) : drawnPosition(item, this.store.moment);
    }

    /** Returns a position between those in the previous and in this snapshot, so that items move smoothly. */
    private interpolatePlace(item: Item, share: number): Place {
        const now = positionOf(item) ?? { x: 0, y: 0 };
        const old = this.store.previous.items.get(itemKey(item.object, item.id));
        const before = old ? positionOf(old) : null;
        if (!before || share >= 1 || Math.hypot(now.x - before.x, now.y - before.y) > TELEPORT_DISTANCE) return now;
        return { x: before.x + (now.x - before.x) * share, y: before.y + (now.y - before.y) * share };
    }

    private stepShare(): number {
        const { store } = this;
        const step = Math.min(store.moment.t - store.previous.t, LONGEST_STEP_MS);
        if (reducedMotion.matches || !store.isLive || step <= 0) return 1;
        return Math.min((performance.now() - store.shownAt) / step, 1);
    }

    private draw(): void {
        const { context, store, camera } = this;
        if (!context || this.camera.width === 0) return;
        ++this.frames;
        const { moment } = store;
        const characters = [...moment.all('character')];
        const share = this.stepShare();
        this.drawn.clear();
        for (const item of characters) this.drawn.set(item.id, this.interpolatePlace(item, share));
        this.moveCamera(moment);
        context.setTransform(1, 0, 0, 1, 0, 0);
        context.fillStyle = store.tiles ? '#101216' : AIR;
        context.fillRect(0, 0, this.canvas.width, this.canvas.height);
        camera.applyToContext(context, this.ratio);
        const { left, top, right, bottom } = camera.visibleArea;
        store.tiles?.draw(context, left, top, right, bottom);
        this.drawClip(moment);
        drawItems(context, moment);
        for (const item of characters) {
            const place = this.drawn.get(item.id);
            if (place) drawTee(context, moment, item, place);
        }
        this.drawSelection(moment);
        this.drawNames(moment, characters);
    }

    private lookAt({ x, y }: Place): void {
        this.camera.x = x;
        this.camera.y = y;
        const { tiles } = this.store;
        // A tee outside the map stays in the middle of the canvas.
        if (tiles && x >= 0 && y >= 0 && x <= tiles.width * TILE && y <= tiles.height * TILE) this.keepInsideMap();
    }

    /** Returns the position to follow. If the followed player is dead or has left, returns the centre of the session's view. */
    private followedPlace(moment: Moment): Place | null {
        const { store } = this;
        if (store.following === null) return null;
        const item = moment.items.get(store.following);
        return item ? this.placeOf(item) : store.source === WORLD ? null : this.viewPoint(moment);
    }

    /** Moves the camera: at first to the player for whom the snapshot was made, then with the followed item. */
    private moveCamera(moment: Moment): void {
        const { store, camera } = this;
        const place = this.followedPlace(moment);
        if (place) this.lookAt(place);
        else if (this.keepsAll) this.approachAll(reducedMotion.matches ? 1 : APPROACH_SHARE);
        if (this.isCameraPlaced || moment.tick < 0) return;
        const [client] = this.drawn.has(moment.localClient) ? [moment.localClient] : this.drawn.keys();
        const first = (client === undefined ? undefined : this.drawn.get(client)) ?? this.viewPoint(moment);
        if (!first) return;
        this.isCameraPlaced = true;
        if (store.source === WORLD) {
            this.keepsAll = true;
            this.approachAll(1);
            return this.showFollowing();
        }
        camera.scale = Math.min(Math.max(camera.width / 1350, 0.35), 1.25);
        this.lookAt(first);
        if (store.selected === null && client !== undefined) {
            store.selected = itemKey(objectIndex('character'), client);
            store.following = store.selected;
            store.notify('selection');
        }
    }

    /** Returns the centre of the session's view: the position that it spectates, or the position of its tee, or the last known
     *  centre if the player is dead. */
    private viewPoint(moment: Moment): Place | null {
        const [watching] = [...moment.all('spectator_info')];
        const place = watching ? positionOf(watching) : this.drawn.get(moment.localClient) ?? null;
        if (place) this.lastViewPoint = place;
        return this.lastViewPoint;
    }

    private drawClip(moment: Moment): void {
        const { context, store } = this;
        if (!context || store.source === WORLD || moment.tick < 0) return;
        const local = this.viewPoint(moment);
        if (!local) return;
        const session = store.state?.sessions.find((each) => each.number === store.source);
        const { x, y } = session?.protocol.endsWith('+ddnet') ? CLIP_HALF_SIZE.ddnet : CLIP_HALF_SIZE.vanilla;
        context.strokeStyle = 'rgb(255 255 255 / 30%)';
        context.lineWidth = 2 / this.camera.scale;
        context.setLineDash([12 / this.camera.scale, 10 / this.camera.scale]);
        context.strokeRect(local.x - x, local.y - y, x * 2, y * 2);
        context.setLineDash([]);
    }

    private drawSelection(moment: Moment): void {
        const item = this.store.selected === null ? undefined : moment.items.get(this.store.selected);
        const place = item && this.placeOf(item);
        if (place && this.context) drawSelectionRing(this.context, place);
    }

    private drawNames(moment: Moment, characters: readonly Item[]): void {
        const { context, camera, store } = this;
        if (!context) return;
        context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        const plates: NamePlate[] = [];
        // The selected player's name is drawn first, so that it stays directly above the tee.
        const chosenFirst = [...characters].sort((a, b) => Number(itemKey(b.object, b.id) === store.selected) - Number(itemKey(a.object, a.id) === store.selected));
        for (const item of chosenFirst) {
            const place = this.drawn.get(item.id);
            if (!place) continue;
            drawNamePlate(context, moment.playerName(item.id) || `client ${item.id}`, camera.toScreen(place.x, place.y),
                itemKey(item.object, item.id) === store.selected, camera.scale, plates);
        }
    }
}
