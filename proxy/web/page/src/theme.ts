// The dark or light theme: that of the system, until the viewer chooses one.

const THEME_STORAGE_KEY = 'twscope-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

const currentTheme = (): string => localStorage.getItem(THEME_STORAGE_KEY) ?? (dark.matches ? 'dark' : 'light');

export function applyTheme(onChange: () => void): () => void {
    const apply = (): void => {
        document.documentElement.dataset['theme'] = currentTheme();
        onChange();
    };
    dark.addEventListener('change', apply);
    apply();
    return () => {
        localStorage.setItem(THEME_STORAGE_KEY, currentTheme() === 'dark' ? 'light' : 'dark');
        apply();
    };
}
