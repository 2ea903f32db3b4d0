package segment

import "testing"

func TestBinSizeCalculation(t *testing.T) {
	tests := []struct{ units, below, above uint32 }{
		{0, 0, 0},
		{1, 1, 1},
		{7, 7, 7},
		{8, 8, 8},
		{15, 15, 15},
		{16, 16, 16},
		{17, 16, 17},
		{18, 17, 17},
		{31, 23, 24},
		{32, 24, 24},
		{118, 38, 39},
		{1023, 63, 64},
		{1024, 64, 64},
		{1025, 64, 65},
		{65536, 112, 112},
		{529445, 136, 137},
		{1048575, 143, 144},
		{maxUnits - 1, 238, 239},
		{maxUnits, 239, 239},
	}
	for _, tt := range tests {
		if b := binBelow(tt.units); b != tt.below {
			t.Errorf("binBelow(%d) = %d, want %d", tt.units, b, tt.below)
		}
		if b := binAbove(tt.units); b != tt.above {
			t.Errorf("binAbove(%d) = %d, want %d", tt.units, b, tt.above)
		}
	}
}

func TestBinsAreOrdered(t *testing.T) {
	last := binBelow(maxUnits)
	for bin := uint32(0); bin <= last; bin++ {
		units := binUnits(bin)
		if binBelow(units) != bin || binAbove(units) != bin {
			t.Errorf("bin %d of %d units maps to %d and %d", bin, units, binBelow(units), binAbove(units))
		}
		if bin == last {
			break
		}
		next := binUnits(bin + 1)
		if next <= units {
			t.Fatalf("bin %d is not larger than bin %d", bin+1, bin)
		}
		if between := units + (next-units)/2; between > units {
			if binBelow(between) != bin || binAbove(between) != bin+1 {
				t.Errorf("%d units map to %d and %d", between, binBelow(between), binAbove(between))
			}
			if waste := float64(next-units-1) / float64(units+1); waste > 0.125 {
				t.Errorf("rounding up to bin %d wastes %.3f", bin+1, waste)
			}
		}
	}
	if binUnits(last) != maxUnits {
		t.Errorf("the last bin has %d units", binUnits(last))
	}
}
