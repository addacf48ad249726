#include "snapshot/error.h"
