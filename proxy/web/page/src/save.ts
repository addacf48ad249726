import { make } from './dom';

/** Makes the browser download a file. */
export function save(blob: Blob, name: string): void {
    const link = make('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
