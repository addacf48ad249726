#include "snapshot/history.h"
