#include "proxy/wire/error.h"
