#include "snapshot/cursor.h"
