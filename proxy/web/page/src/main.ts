import 'uplot/dist/uPlot.min.css';
import './page.css';
import { Alarms } from './alarms';
import { teeColors } from './colors';
import { showsImages, toggleImages } from './design';
import { elementById, visibleText } from './dom';
import { Findings } from './findings';
import { formatDuration } from './format';
import { StoreWriter, Store, WORLD, type Source } from './store';
import { listenToKeys } from './keys';
import { Links } from './links';
import { Connection } from './connection';
import { Log } from './log';
import { Network } from './network';
import { showOnlyPanels, openPanel, openStoredPanel, panelKeys } from './panels';
import type { Message, SessionState, State } from './protocol';
import { Recording } from './recording';
import { Selection } from './selection';
import { Sessions } from './sessions';
import { applyTheme } from './theme';
import { Tiles } from './tiles';
import { Timeline } from './timeline';
import { TrafficPanel } from './traffic';
import { RestartWatch } from './restart_watch';
import { View } from './view';

const EVERY_SNAPSHOT_RATE = 50;
const ZOOM_STEP = 1.25;
const MAP_RETRY_MS = 5000;

const store = new Store();
const alarms = new Alarms();
const storeWriter = new StoreWriter(store, () => connection.request({ again: true }));
const restartWatch = new RestartWatch(store, () => connection.request({ again: true }));
const sessions = new Sessions(store, showSource);
const selection = new Selection(store);
const findings = new Findings(store);
const timeline = new Timeline(store, (finding) => findings.showFinding(finding));
const view = new View(store);
const log = new Log(store, (text) => connection.request({ log: text }));
const traffic = new TrafficPanel(store, (on) => connection.request({ bytes: on }));
const recording = new Recording(store);
const network = new Network(store);
const links = new Links(store, { showSource, showFinding: (finding) => findings.showFinding(finding), shownFinding: () => findings.shown });
const connection: Connection = new Connection(handleMessage, (isOpen, refused) => {
    alarms.setConnection(isOpen, refused);
    if (isOpen) log.onReconnected();
    document.body.classList.toggle('closed', !isOpen);
});
connection.request({ pace: EVERY_SNAPSHOT_RATE, log: log.filter });
/** Id of the map that is shown or being loaded; undefined: no map was requested. */
let mapId: string | null | undefined;
/** Why no map is shown; empty if there is no reason. */
let mapProblem = '';
/** Whether the data comes from a stream of records. */
let showsStream = false;
/** The session shown before the view of all players. */
let lastSession: Source | null = null;

function handleMessage(message: Message): void {
    if (message.k === 'state' ? restartWatch.checkState(message.state) : restartWatch.isOutdated) return;
    switch (message.k) {
    case 'frame': return storeWriter.addFrame(message);
    case 'bars': return storeWriter.addLooseBars(message.session, message.bars);
    case 'log': return log.addLines(message.lines, message.lost);
    case 'bytes': return traffic.addTotals(message.rows);
    case 'error': return message.about === 'log' ? log.showFilterError(message.message, message.offset) : console.warn(message.message);
    case 'state':
        if (message.state.stream && !showsStream) hideGamePanels();
        storeWriter.setState(message.state, message.frames_lost, message.world_server);
        alarms.setState(message.state);
        showHeader();
        void loadMap();
    }
}

/** Hides the panels that a stream of records cannot fill, because it shows no game. */
function hideGamePanels(): void {
    showsStream = true;
    showOnlyPanels(['sessions', 'findings', 'log']);
}

/** Returns the address that players enter. A server that listens on all addresses is reached at this page's host. */
const connectAddress = (listen: string): string => listen.replace(/^(0\.0\.0\.0|\[::\])(?=:\d+$)/, location.hostname);

/** Returns a text that tells the viewer what to do while no game is shown. */
function waitingText(state: State): string {
    if (!state.inspecting) return 'twscope forwards only and inspects nothing, so there is no game to be seen.';
    const client = state.sessions.find((session) => !session.closed);
    const named = state.servers.find(({ name }) => name === client?.server_name);
    if (client && (named ? named.silent : state.server_silent)) {
        return `A client at ${client.client} tries to connect, but the server ${named?.server ?? state.server} does not answer.\n`
            + 'Start the server, or give twscope its right address.';
    }
    if (client) return `${client.name || client.client} is connecting …`;
    const nobody = state.sessions.length > 0 ? 'All players have left.' : 'No players yet.';
    if (state.listen.length === 0) return `${nobody} twscope waits for traffic of ${state.server}.`;
    const servers = state.servers.length > 0 ? state.servers.map(({ name, listen }) => `${name}: connect ${connectAddress(listen[0] ?? '')}`)
        : [`connect ${connectAddress(state.listen[0] ?? '')}`];
    return [`${nobody} Open the console of the game (F1) and enter:`, ...servers].join('\n');
}

/** Shows a session, or all players. */
function showSource(source: Source): void {
    if (source === store.source) return;
    if (store.source > 0) lastSession = store.source;
    store.source = source;
    storeWriter.clearSource();
    connection.request({ watch: source === WORLD ? 'all' : source });
    mapId = undefined;
    mapProblem = '';
    store.notify('source');
    void loadMap();
}

async function loadMap(): Promise<void> {
    const isOfWorld = (each: SessionState): boolean => !each.closed && (each.server_name ?? null) === store.worldServer;
    const sessions = store.state?.sessions.filter((each) => (store.source === WORLD ? isOfWorld(each) : each.number === store.source)) ?? [];
    const session = sessions.find(({ map_id: id }) => id !== null) ?? sessions[0];
    if (!session) return;
    if (session.map_id === null) mapProblem = missingMapText(session);
    if (session.map_id === mapId) return;
    const id = mapId = session.map_id;
    store.setMap(null); // the previous map no longer applies
    if (id === null) return;
    const tiles = await Tiles.load(session.number).catch((error: unknown) => (error as Error).message);
    if (mapId !== id) return; // another source was chosen meanwhile
    if (typeof tiles === 'string') {
        mapProblem = `No map: ${tiles}.`;
        setTimeout(() => { if (mapId === id) mapId = undefined; }, MAP_RETRY_MS);
        return;
    }
    mapProblem = '';
    store.setMap(tiles);
}

/** Returns why the map of a session is not shown, and what to do. */
const missingMapText = ({ map }: SessionState): string => (map === '' ? 'No map: twscope did not see which one the server announced.'
    : `No map: twscope has no file of ${map}. Start it with --maps DIR, a folder with the server’s version.`);

function showHeader(): void {
    const { state } = store;
    if (!state) return;
    document.body.classList.toggle('collected', state.stream !== null);
    elementById('route').textContent = state.stream ? `all servers of the stream ${state.stream.name}` : state.servers.length > 0 ? `${state.servers.length} servers` : state.listen.length > 0 ? `${state.listen.join(', ')} → ${state.server}` : `tap: ${state.server}`;
    elementById('age').textContent = `up ${formatDuration((state.now_ms - state.started_ms) / 1000)} · twscope ${state.version}`;
    const isOver = hasEnded(state);
    elementById('empty').hidden = store.moment.tick >= 0 && !(isOver && store.isLive);
    elementById('empty').classList.toggle('over', isOver);
    elementById('empty').textContent = visibleText(isOver ? endedText(state) : waitingText(state));
    elementById('no-map').hidden = mapProblem === '' || store.tiles !== null || store.moment.tick < 0;
    elementById('no-map').textContent = visibleText(mapProblem);
    showPlaying();
}

/** Whether snapshots are shown, but all sessions of the current source have ended. */
const hasEnded = ({ sessions }: State): boolean => store.moment.tick >= 0
    && !sessions.some((session) => !session.closed && (store.source === WORLD || session.number === store.source));

function endedText(state: State): string {
    if (state.sessions.every(({ closed }) => closed)) return 'The players have left; this is the last snapshot.';
    return `${sessions.playerNameOf(state, store.source) || `Session ${store.source}`} has left; this is the last snapshot.\n`
        + 'Others are playing: choose one under “view”, or press W for all players.';
}

function showPlaying(): void {
    const isRunning = store.isLive && !(store.state && hasEnded(store.state));
    elementById('pause').setAttribute('aria-pressed', String(!store.isLive));
    elementById('live').setAttribute('aria-pressed', String(isRunning));
    document.body.classList.toggle('paused', !isRunning);
}

const togglePause = (): void => (store.isLive ? store.goTo(store.history.length - 1) : store.goLive());
const zoomView = (factor: number): void => view.zoomBy(factor);
const showImagesButton = (): void => elementById('images').setAttribute('aria-pressed', String(showsImages()));
const toggleTheme = applyTheme(() => timeline.redraw());

function addListeners(): void {
    const buttonActions: Record<string, () => void> = {
        pause: togglePause, live: () => store.goLive(), back: () => store.step(-1), forth: () => store.step(1), theme: toggleTheme,
        'zoom-in': () => zoomView(ZOOM_STEP), 'zoom-out': () => zoomView(1 / ZOOM_STEP), fit: () => view.showWholeMap(), follow: () => view.toggleFollowing(),
        images: switchImages,
    };
    for (const [id, act] of Object.entries(buttonActions)) elementById(id).addEventListener('click', act);
    store.on('moment', showPlaying);
    const nudge = (x: number, y: number) => () => view.moveViewBy(-x * 60, -y * 60);
    listenToKeys([
        { keys: [' '], title: 'pause, or back to live', act: togglePause },
        { keys: ['ArrowLeft'], title: 'previous snapshot', act: () => store.step(-1) },
        { keys: ['ArrowRight'], title: 'next snapshot', act: () => store.step(1) },
        { keys: ['PageUp'], title: 'back one second', act: () => store.step(-50) },
        { keys: ['PageDown'], title: 'forward one second', act: () => store.step(50) },
        { keys: ['L', 'End'], title: 'back to live', act: () => store.goLive() },
        { keys: ['+', '='], title: 'zoom in', act: () => zoomView(ZOOM_STEP) },
        { keys: ['-'], title: 'zoom out', act: () => zoomView(1 / ZOOM_STEP) },
        { keys: ['0'], title: 'show the whole map', act: () => view.showWholeMap() },
        { keys: ['F'], title: 'follow the selected player, or all', act: () => view.toggleFollowing() },
        { keys: ['G'], title: 'the map\'s own images, or only colours', act: switchImages },
        { keys: ['H'], title: 'map to the left', act: nudge(-1, 0) },
        { keys: ['K'], title: 'map to the right', act: nudge(1, 0) },
        { keys: ['U'], title: 'map up', act: nudge(0, -1) },
        { keys: ['J'], title: 'map down', act: nudge(0, 1) },
        { keys: ['W'], title: 'all players, or back', act: toggleWorld },
        { keys: ['P'], title: 'next player', act: nextPlayer },
        { keys: ['/'], title: 'filter the log', act: () => { openPanel('log'); log.focus(); } },
        { keys: ['Escape'], title: 'clear the selection', act: () => view.select(null) },
        { keys: ['T'], title: 'dark or light', act: toggleTheme },
        ...panelKeys().map(({ key, title, id }) => ({ keys: [key], title, act: () => openPanel(id) })),
    ]);
}

function switchImages(): void {
    toggleImages();
    showImagesButton();
}

function toggleWorld(): void {
    if (store.source < 0) return;
    const back = store.source === WORLD ? lastSession ?? store.state?.sessions[0]?.number : WORLD;
    if (back !== undefined) showSource(back);
}

function nextPlayer(): void {
    const keys = [...store.moment.items].filter(([, item]) => view.drawn.has(item.id) && store.moment.get('character', item.id) === item).map(([key]) => key);
    const next = keys[(keys.indexOf(store.selected ?? -1) + 1) % Math.max(keys.length, 1)];
    if (next === undefined) return;
    view.select(next);
    store.following = next;
    store.notify('selection');
}

addListeners();
showImagesButton();
openStoredPanel();
links.openAddress();
restartWatch.loadObjectTable();
// For the browser's console and for tests: the page's state, to be read only.
Object.assign(window, { twscope: { store, view, skin: teeColors, network, sessions, selection, recording } });
