// The box with problems that a viewer must know about at once.
import { updateChildren, elementById, makeElement } from './dom';
import { formatTime, formatCount } from './format';
import { isSameObserver, type State } from './protocol';

const MAX_NAMED_SERVERS = 5;
const RESTART_SHOWN_MS = 20_000;

/** A problem to show. `about` identifies the problem and stays the same when the numbers in `text` change. */
interface Alarm { about: string; text: string }

export class Alarms {
    private open = false;
    private refused = '';
    private state: State | null = null;
    private restartedAt = 0;
    private restartText = ''; // text of the alarm about the last restart
    private readonly box = elementById('alarm');
    /** The text for screen readers. It changes only when problems begin or end, not with the numbers in the box. */
    private readonly announcement = elementById('alarm-aloud');
    private announced = '';

    setConnection(open: boolean, refused: string): void {
        this.open = open;
        this.refused = refused;
        this.show();
    }

    setState(state: State): void {
        if (this.state && !isSameObserver(state, this.state)) {
            this.restartedAt = performance.now();
            this.restartText = state.started_ms !== this.state.started_ms ? 'twscope was restarted.'
                : `The observer was restarted (number ${state.observer}): traffic in between was forwarded, but not inspected.`;
        }
        this.state = state;
        this.show();
    }

    private silenceAlarms(state: State): Alarm[] {
        const alarms: Alarm[] = [];
        const silent = state.servers.filter((server) => server.silent);
        const addAlarm = (name: string, text: string): void => { alarms.push({ about: `silent ${name}`, text }); };
        const since = `has not answered since ${formatTime(state.server_silent_since_ms ?? state.now_ms)}: ` +
            `${formatCount(state.server_unanswered ?? 0)} datagrams${state.server_refused ? `, ${formatCount(state.server_refused)} refused` : ''}.`;
        if (silent.length > MAX_NAMED_SERVERS) {
            addAlarm('many', `${silent.length} servers do not answer, the first of them since ${formatTime(state.server_silent_since_ms ?? state.now_ms)}.`);
            return alarms;
        }
        if (state.servers.length === 0 && state.server_silent) addAlarm('', `The server ${state.server} ${since}`);
        // The state has the time and the numbers of the first silent server only.
        silent.forEach(({ name, server }, index) => addAlarm(name, `The server ${name} (${server}) ${index === 0 ? since : 'does not answer.'}`));
        return alarms;
    }

    private currentAlarms(): Alarm[] {
        const { state } = this;
        if (!this.open && this.refused) return [{ about: `refused ${this.refused}`, text: `twscope refuses this page: ${this.refused}` }];
        if (!this.open) {
            return [{ about: 'closed', text: 'No connection to twscope: it has ended, or its observer is restarting. Trying again; the game may be unaffected.' }];
        }
        if (!state) return [];
        const alarms = this.silenceAlarms(state);
        if (state.stream?.trouble) {
            alarms.push({ about: 'stream', text: `No records from the bus: ${state.stream.trouble}. Trying again.` });
        }
        if (state.recording.failed) {
            const { error, lost } = state.recording;
            const losses = lost === 0 ? '' : ` ${formatCount(lost)} ${lost === 1 ? 'record' : 'records'} could not be written.`;
            alarms.push({ about: 'recording', text: `Recording stopped: ${error}.${losses} The game continues.` });
        }
        if (state.recording.page?.stopped) {
            alarms.push({ about: 'page recording', text: `Recording from the page stopped: ${state.recording.page.stopped}. The game continues.` });
        }
        if (this.restartedAt && performance.now() - this.restartedAt < RESTART_SHOWN_MS) {
            alarms.push({ about: `observer ${state.observer} of ${state.started_ms}`, text: this.restartText });
        }
        return alarms;
    }

    private show(): void {
        const alarms = this.currentAlarms();
        const about = alarms.map((alarm) => alarm.about).join('\n');
        this.box.hidden = alarms.length === 0;
        updateChildren(this.box, alarms.map(({ text }) => makeElement('p', '', text)));
        if (about !== this.announced) this.announcement.textContent = alarms.map(({ text }) => text).join(' ');
        this.announced = about;
        document.body.classList.toggle('alarmed', alarms.length > 0);
    }
}
